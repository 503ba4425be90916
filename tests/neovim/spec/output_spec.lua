local output = require('promptside.output')

describe('output', function()
  it('puts tools in a column of their own', function()
    local lines, marks = output.lines_of({ role = 'tool', text = 'Read src/a.py' })
    assert.are.same({ 'Read     src/a.py' }, lines)
    assert.are.same({ { 0, 0, 4, 'PromptsideTool' }, { 0, 9, 17, 'PromptsidePath' } }, marks)
  end)

  it('keeps no control characters', function()
    local lines = output.lines_of({ role = 'text', text = 'a\27[31mb\r\nc\n' })
    assert.are.same({ 'a[31mb', 'c' }, lines)
  end)

  it('shows a failure', function()
    local _, marks = output.lines_of({ role = 'result', text = 'exit 1', ok = false })
    assert.are.equal('PromptsideFailed', marks[1][4])
  end)
end)
