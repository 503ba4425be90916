---What an attempt changed: a list of files, or each beside what it was (ED-12).
local client = require('promptside.client')
local message = require('promptside.message')

local M = {}

---Tabs that are opened at once; the list has the rest.
local TABS = 8
local KINDS = { added = 'new', deleted = 'deleted', modified = 'changed', type = 'changed' }

local function words(file)
  local counts = {}
  if file.added then
    counts[#counts + 1] = '+' .. file.added
  end
  if file.removed then
    counts[#counts + 1] = '-' .. file.removed
  end
  return (KINDS[file.kind] or file.kind) .. (#counts > 0 and ' ' .. table.concat(counts, ' ') or '')
end

local function title(result)
  return ('%s, attempt %d%s: %d file%s'):format(
    result.stage,
    result.attempt,
    result.running and ' (runs)' or '',
    #result.files,
    #result.files == 1 and '' or 's'
  )
end

---The files as the quickfix list.
---@param result table promptside.ours.Changes
function M.list(result)
  if #result.files == 0 then
    return message.say(('Attempt %d of %s changed no files.'):format(result.attempt, result.stage))
  end
  local items = vim.tbl_map(function(file)
    return { filename = vim.uri_to_fname(file.uri), lnum = 1, text = words(file) }
  end, result.files)
  vim.fn.setqflist({}, ' ', { title = 'Promptside: ' .. title(result), items = items })
  vim.cmd('botright copen')
end

---One side of a comparison, in the current window.
local function side(uri)
  local address = require('promptside.address')
  local name = vim.startswith(uri, 'promptside:') and address.short(uri) or vim.uri_to_fname(uri)
  vim.cmd.edit({ args = { name }, magic = { file = false } })
  vim.cmd.diffthis()
end

---Each file in a tab: on the left what it was, on the right what it is.
---@param result table
function M.compare(result)
  if #result.files == 0 then
    return M.list(result)
  end
  for index, file in ipairs(result.files) do
    if index > TABS then
      message.say(
        ('%d of %d files are shown; :Promptside changes lists them all.'):format(TABS, #result.files)
      )
      break
    end
    vim.cmd.tabnew()
    vim.bo.bufhidden = 'wipe'
    side(file.before)
    vim.cmd('rightbelow vsplit')
    side(file.after)
  end
end

---Ask for what an attempt changed; the newest if none is named.
---@param target table
---@param beside boolean
function M.ask(target, beside)
  client.request('promptside/changes', target, function(err, result)
    if err then
      return message.say(message.sentence(err), 'warning')
    end
    if beside then
      M.compare(result)
    else
      M.list(result)
    end
  end)
end

return M
