---`promptside` in a terminal of the editor: what needs a terminal gets one, in a split, with the cursor in it.
local message = require('promptside.message')
local program = require('promptside.program')
local window = require('promptside.window')

local M = {}

---@class promptside.TerminalOptions
---@field cwd? string
---@field mods? table Where the person wants the window.
---@field done? fun(code: integer)

---Run `promptside` with some words.
---@param words string[]
---@param options promptside.TerminalOptions
function M.run(words, options)
  local found = program.find()
  if not found then
    return message.say(program.missing(), 'error')
  end
  local before = vim.api.nvim_get_current_win()
  local mods = options.mods or { split = 'belowright' }
  vim.cmd.new({ mods = mods })
  local buf = vim.api.nvim_get_current_buf()
  vim.bo[buf].bufhidden = 'wipe'
  local title = 'promptside ' .. words[1]
  window.bar(0, 'PromptsideTitle', title, '<C-\\><C-n> leaves it')
  vim.fn.jobstart(vim.list_extend(vim.deepcopy(found.command), words), {
    term = true,
    cwd = options.cwd,
    on_exit = function(_, code)
      if vim.api.nvim_buf_is_valid(buf) then
        for _, win in ipairs(vim.fn.win_findbuf(buf)) do
          window.bar(win, 'PromptsideMuted', title .. ' has ended', 'q closes this')
        end
        vim.keymap.set('n', 'q', function()
          require('promptside.buffers').leave()
          if vim.api.nvim_win_is_valid(before) then
            vim.api.nvim_set_current_win(before)
          end
        end, { buffer = buf, nowait = true, desc = 'Close' })
        if vim.api.nvim_get_current_buf() == buf then
          vim.cmd.stopinsert()
        end
      end
      if options.done then
        options.done(code)
      end
    end,
  })
  vim.cmd.startinsert()
end

---Continue an attempt with the agent's own screen; at its end the task is given back (ED-14).
---@param task { project: string, id: integer }
---@param mods? table
function M.take_over(task, mods)
  M.run({ 'take-over', tostring(task.id), '--project', task.project }, {
    cwd = task.project,
    mods = mods,
    done = function()
      local tasks = require('promptside.tasks')
      local view = tasks.get(task.project, task.id)
      if view then
        tasks.reread(view)
      end
    end,
  })
end

return M
