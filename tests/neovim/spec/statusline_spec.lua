local promptside = require('promptside')

describe('statusline', function()
  it('says what waits first', function()
    vim.g.promptside_status = nil
    assert.are.equal('', promptside.statusline())
    for expected, status in pairs({
      ['[!2]'] = { waiting = 2, running = 1, failed = 1, daemon = true },
      ['[~1]'] = { waiting = 0, running = 1, failed = 1, daemon = true },
      ['[x]'] = { waiting = 0, running = 0, failed = 1, daemon = true },
      [''] = { waiting = 0, running = 0, failed = 0, daemon = true },
    }) do
      vim.g.promptside_status = status
      assert.are.equal(expected, promptside.statusline())
    end
    vim.g.promptside_status = { waiting = 2, running = 0, failed = 0, daemon = false }
    assert.are.equal('[x]', promptside.statusline())
  end)
end)
