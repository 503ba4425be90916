local entries = require('promptside.entries')

describe('entries', function()
  it('put tools in a column of their own', function()
    local lines, painted = entries.lines_of({ role = 'tool', text = 'Read src/a.py' })
    assert.are.same({ 'Read     src/a.py' }, lines)
    assert.are.same({
      { row = 0, from = 0, to = 4, group = 'PromptsideTool' },
      { row = 0, from = 9, to = 17, group = 'PromptsidePath' },
    }, painted)
  end)

  it('keep no control characters', function()
    local lines = entries.lines_of({ role = 'text', text = 'a\27[31mb\r\nc\n' })
    assert.are.same({ 'a[31mb', 'c' }, lines)
  end)

  it('show a failure', function()
    local _, painted = entries.lines_of({ role = 'result', text = 'exit 1', ok = false })
    assert.are.equal('PromptsideFailed', painted[1].group)
  end)

  it('are written behind each other, or over what they replace', function()
    local buf = vim.api.nvim_create_buf(false, true)
    local written = entries.begin(buf)
    for _, entry in ipairs({
      { role = 'text', text = 'One', block = 'a' },
      { role = 'text', text = '', block = 'b' },
      { role = 'tool', text = 'Read src/a.py' },
      { role = 'text', text = ' and two\nthree', block = 'a' },
      { role = 'text', text = 'Last', block = 'b' },
      { role = 'text', text = 'First', block = 'b', replace = true },
    }) do
      entries.add(written, entry)
    end
    assert.are.same(
      { 'One and two', 'three', 'Read     src/a.py', 'First' },
      vim.api.nvim_buf_get_lines(buf, 0, -1, false)
    )
    entries.add(written, { role = 'text', text = '', block = 'a', replace = true })
    assert.are.same({ 'Read     src/a.py', 'First' }, vim.api.nvim_buf_get_lines(buf, 0, -1, false))
  end)
end)
