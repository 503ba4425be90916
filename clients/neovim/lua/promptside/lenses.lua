---Lenses of form documents: asked for anew when they may be others, and drawn so that none is cut off.
local client = require('promptside.client')
local text = require('promptside.text')

local M = {}

local GAP, BETWEEN = '   ', ' | '
---@type table<integer, lsp.CodeLens[]>
local known = {}
---Buffers whose lenses are asked for now; true where they are to be asked for once more.
---@type table<integer, boolean>
local asking = {}

---The lenses of a row, from 0, that can be run.
---@param buf integer
---@param row integer
---@return lsp.CodeLens[]
function M.at(buf, row)
  return vim.tbl_filter(function(lens)
    return lens.command ~= nil and lens.range.start.line == row
  end, known[buf] or {})
end

---Forget them, and what was asked.
---@param buf integer
function M.forget(buf)
  known[buf], asking[buf] = nil, nil
end

---The cells that a line of a buffer has on the screen, also when the column of the signs has come.
---@param buf integer
---@return integer
function M.room(buf)
  local win = vim.fn.win_findbuf(buf)[1]
  local info = win and vim.fn.getwininfo(win)[1]
  if not info then
    return vim.o.columns
  end
  local signs = vim.wo[win].signcolumn:match('^auto') and 2 or 0
  return info.width - info.textoff - signs
end

---Titles that say how things stand; the others are to be done.
---@type table<string, boolean>
local says = {}

---Titles in as many rows as they take.
---@param titles string[]
---@param width integer
---@return string[][]
local function rows_of(titles, width)
  local rows, used = { {} }, 0
  for _, title in ipairs(titles) do
    local cells = vim.fn.strdisplaywidth(title) + #BETWEEN
    if used > 0 and #GAP + used + cells - #BETWEEN > width then
      rows[#rows + 1], used = {}, 0
    end
    table.insert(rows[#rows], title)
    used = used + cells
  end
  return rows
end

local function chunks_of(titles)
  local chunks = { { GAP, 'Normal' } }
  for index, title in ipairs(titles) do
    if index > 1 then
      chunks[#chunks + 1] = { BETWEEN, 'PromptsideMuted' }
    end
    chunks[#chunks + 1] = { title, says[title] and 'PromptsideMuted' or 'PromptsideLens' }
  end
  return chunks
end

---Draw them behind their line; where there is no room for all of them, below it.
---@param buf integer
function M.draw(buf)
  local server = client.get()
  local spaces = vim.lsp.codelens.__namespaces
  if not server or not spaces or not known[buf] or not vim.api.nvim_buf_is_loaded(buf) then
    return
  end
  -- The editor's own place for lenses: what it would draw there, or clears, is ours as well.
  local space, width = spaces[server.id], M.room(buf)
  vim.api.nvim_buf_clear_namespace(buf, space, 0, -1)
  local titles = {}
  says = {}
  for _, lens in ipairs(known[buf]) do
    local row = lens.range.start.line
    if lens.command then
      titles[row] = titles[row] or {}
      local title = text.cut((lens.command.title:gsub('%s+', ' ')), math.max(width - #GAP, 1))
      says[title] = lens.command.command == 'promptside.showLack' or nil
      table.insert(titles[row], title)
    end
  end
  for row, words in pairs(titles) do
    local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
    local all = GAP .. table.concat(words, BETWEEN)
    if line and vim.fn.strdisplaywidth(line) + vim.fn.strdisplaywidth(all) <= width then
      vim.api.nvim_buf_set_extmark(buf, space, row, 0, { virt_text = chunks_of(words), hl_mode = 'combine' })
    elseif line then
      vim.api.nvim_buf_set_extmark(buf, space, row, 0, {
        virt_lines = vim.tbl_map(chunks_of, rows_of(words, width)),
      })
    end
  end
end

---Ask for them: they do not refresh by themselves, and the editor's own refresh drops a wish while another one is
---under way.
---@param buf integer
function M.ask(buf)
  local server = client.get()
  if not server then
    return
  elseif asking[buf] ~= nil then
    asking[buf] = true
    return
  end
  asking[buf] = false
  local params = { textDocument = { uri = vim.uri_from_bufnr(buf) } }
  server:request('textDocument/codeLens', params, function(err, result)
    local again = asking[buf]
    asking[buf] = nil
    if vim.api.nvim_buf_is_loaded(buf) and not err then
      known[buf] = result or {}
      -- Kept where `vim.lsp.codelens.run()` finds them; 0.12 asks for them by itself.
      if vim.lsp.codelens.save then
        vim.lsp.codelens.save(known[buf], buf, server.id)
        M.draw(buf)
      else
        vim.lsp.codelens.refresh({ bufnr = buf })
      end
    end
    if again then
      M.ask(buf)
    end
  end, buf)
end

return M
