local lines = require('promptside.lines')

local function line(given)
  return lines.whole(given)
end

describe('lines of a page', function()
  local group = line({ fold = 'closed', ref = 'group/completed' })
  local task = line({ fold = 'inside', ref = 'task/1', page = 'task', task = 1 })

  it('begin outside of a closed group', function()
    assert.are.equal(1, lines.first({ group, task }))
    assert.are.equal(4, lines.first({ group, task, line({ fold = 'open', ref = 'group/running' }), task }))
  end)

  it('begin at an answer that can be given', function()
    local asks = line({ fold = 'inside', ref = 'decision/P1' })
    local allow = line({
      fold = 'inside',
      ref = 'offer/promptside.allow',
      offers = { { command = 'promptside.allow', primary = true } },
    })
    assert.are.equal(3, lines.first({ line({ fold = 'open', ref = 'item/document' }), asks, allow }))
  end)

  it('are found again, and what could be done and is gone has no place', function()
    local stop, retry = line({ ref = 'offer/promptside.stop' }), line({ ref = 'offer/promptside.retry' })
    assert.are.equal(2, lines.moved({ stop }, { retry, stop }, 1))
    assert.is_nil(lines.moved({ stop }, { retry }, 1))
    assert.are.equal(1, lines.moved({ line({ spans = { { text = '2 s' } } }) }, { retry }, 1))
  end)
end)
