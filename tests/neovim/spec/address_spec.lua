local address = require('promptside.address')
local tasks = require('promptside.tasks')

local function task(project, id)
  return {
    id = id,
    project = project,
    seq = 1,
    title = 'T',
    state = 'taken',
    stages = {},
    offers = {},
    decisions = {},
    directory = ('.promptside/tasks/%d-t'):format(id),
  } -- stylua: ignore
end

describe('address', function()
  before_each(function()
    tasks.lost()
  end)

  it('tells pages, output and documents apart', function()
    assert.are.same(
      { 'page', 'tasks' },
      { address.parse('promptside://tasks').kind, address.parse('promptside://tasks').name }
    )
    local one = address.parse('promptside://12')
    assert.are.same({ 'page', 'task', 12 }, { one.kind, one.name, one.task })
    local output = address.parse('promptside://12/implementation/2/output?project=%2Fa%20b')
    assert.are.same(
      { 'output', 12, 'implementation', 2, '/a b' },
      { output.kind, output.task, output.stage, output.attempt, output.project }
    )
    assert.are.equal('content', address.parse('promptside://12/research/1').kind)
    assert.are.equal('content', address.parse('promptside://before/12/research/1/src/a.py').kind)
    assert.is_nil(address.parse('/home/a/b.md'))
  end)

  it('names the project only where a number is two tasks', function()
    tasks.put({ project = '/a', seq = 1, task = task('/a', 1) })
    assert.are.equal('promptside://1', address.name('1', '/a'))
    assert.are.equal('promptside://1/research/1', address.short('promptside://1/research/1?project=%2Fa'))
    tasks.put({ project = '/b', seq = 1, task = task('/b', 1) })
    assert.are.equal('promptside://1?project=/a', address.name('1', '/a'))
    assert.are.equal('/a', address.parse(address.name('1', '/a')).project)
    assert.are.equal(
      'promptside://prompt/1/r-1.md?project=/a',
      address.short('promptside://prompt/1/r-1.md?project=%2Fa')
    )
  end)
end)
