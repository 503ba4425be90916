local item = require('promptside.item')

describe('an item', function()
  local questions = {
    '# Questions: Research',
    '',
    '## Q1 · Which login? (choose one, required)',
    '- [ ] A · Sessions',
    '- [ ] B · Tokens',
    '## Q2 · May it drop a table? (yes or no)',
    '- [ ] Yes',
    '- [ ] No',
    '## Q3 · Which files? (files)',
    'Files:',
  }

  it('stands where its heading is, a choice where its tick is', function()
    assert.are.equal(3, item.row(questions, 'Q1'))
    assert.are.equal(5, item.row(questions, 'Q1', 'B'))
    assert.are.equal(8, item.row(questions, 'Q2', 'No'))
    assert.are.equal(9, item.row(questions, 'Q3'))
  end)

  it('has no choice of another item', function()
    assert.are.equal(6, item.row(questions, 'Q2', 'A'))
    assert.is_nil(item.row(questions, 'Q4'))
  end)

  it('of a review is its tick, of fields its name, of options its letter', function()
    assert.are.equal(2, item.row({ '## Warning', '- [x] **W1** No limit', '- [ ] **W10** None' }, 'W1'))
    assert.are.equal(3, item.row({ '# PR', '## Title (required)', '## Test plan (required)' }, 'test_plan'))
    assert.are.equal(3, item.row({ '## About A', '### A first word', '## A · Cookies (recommended)' }, 'A'))
  end)

  it('is not what an agent quotes', function()
    assert.are.equal(4, item.row({ '```', '## A · not this', '```', '## A · this' }, 'A'))
  end)
end)
