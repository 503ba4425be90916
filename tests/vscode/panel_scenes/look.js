// What can be seen of a page and no selector tells: colours as they are painted, what sticks out, what Tab should reach.

window.look = (() => {
  const LEAST = 4.5;
  const LEAST_LARGE = 3;

  /** [r, g, b, a], each from 0 to 1, of any colour that a computed style has. */
  function parse(colour) {
    const numbers = (colour.match(/-?[\d.]+(e-?\d+)?%?/g) ?? []).map(Number);
    if (colour.startsWith('rgb')) return [numbers[0] / 255, numbers[1] / 255, numbers[2] / 255, numbers[3] ?? 1];
    if (colour.startsWith('color(srgb')) return [numbers[0], numbers[1], numbers[2], numbers[3] ?? 1];
    throw new Error(`what colour is ${colour}?`);
  }

  function over(top, below) {
    const alpha = top[3] + below[3] * (1 - top[3]);
    if (alpha === 0) return [0, 0, 0, 0];
    return [0, 1, 2].map(at => (top[at] * top[3] + below[at] * below[3] * (1 - top[3])) / alpha).concat(alpha);
  }

  function luminance([r, g, b]) {
    const linear = part => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  }

  function ratio(one, other) {
    const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  }

  /** What is painted behind an element's text: its own background over those of what it stands in. */
  function behind(element) {
    let found = [0, 0, 0, 0];
    for (let one = element; one; one = one.parentElement) found = over(found, parse(getComputedStyle(one).backgroundColor));
    return over(found, [1, 1, 1, 1]);
  }

  function seen(element) {
    return element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !element.closest('.hidden');
  }

  function opacity(element) {
    let found = 1;
    for (let one = element; one; one = one.parentElement) found *= Number(getComputedStyle(one).opacity);
    return found;
  }

  function named(element, text) {
    return `${element.tagName.toLowerCase()}.${element.className} ${JSON.stringify(text.trim().slice(0, 40))}`;
  }

  function faint(element, text, colour) {
    const back = behind(element);
    const [r, g, b, a] = parse(colour);
    const front = over([r, g, b, a * opacity(element)], back);
    const style = getComputedStyle(element);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    const contrast = ratio(front, back);
    return contrast < (large ? LEAST_LARGE : LEAST) ? [`${named(element, text)}: ${contrast.toFixed(2)}`] : [];
  }

  /** Texts that are hard to read; what is disabled may be. */
  function contrast() {
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const { parentElement: element, data } = walker.currentNode;
      if (!data.trim() || !seen(element) || element.closest('[aria-disabled=true], :disabled, script, textarea')) continue;
      found.push(...faint(element, data, getComputedStyle(element).color));
    }
    for (const box of document.querySelectorAll('input[type=text], textarea')) {
      if (!seen(box) || box.disabled) continue;
      const shown = box.value ? getComputedStyle(box) : getComputedStyle(box, '::placeholder');
      found.push(...faint(box, box.value || box.placeholder, shown.color));
    }
    return [...new Set(found)];
  }

  /** What has to be scrolled sideways, or sticks out of the page; lists and code in a scroller of their own may. */
  function wide() {
    const scrollers = [document.documentElement, ...document.querySelectorAll('.head, .main, .body, .bar, .centre')];
    const found = scrollers.filter(one => one.scrollWidth > one.clientWidth).map(one => named(one, `scrolls ${one.scrollWidth - one.clientWidth} px`));
    for (const one of document.body.querySelectorAll('*')) {
      if (!seen(one) || one.closest('.rail, pre, table') || isCut(one)) continue;
      const { left, right, width } = one.getBoundingClientRect();
      if (width > 0 && (right > innerWidth + 0.5 || left < -0.5)) found.push(named(one, 'sticks out'));
    }
    return found;
  }

  /** Whether something around it shows only a part, with an ellipsis. */
  function isCut(element) {
    for (let one = element.parentElement; one; one = one.parentElement) if (getComputedStyle(one).overflowX === 'hidden' && one !== document.body) return true;
    return false;
  }

  const CONTROLS = 'a[href], button, input, textarea, summary, [tabindex="0"]';

  /** What Tab has to come to: of radio buttons, of the stages and of a menu one. */
  function stops() {
    const radios = new Set();
    return [...document.querySelectorAll(CONTROLS)].filter(one => {
      if (!seen(one) || one.disabled || one.tabIndex < 0) return false;
      if (one.type !== 'radio') return true;
      const first = !radios.has(one.name);
      radios.add(one.name);
      return first;
    });
  }

  let visited = [];

  /** Begins to watch where Tab goes; how many places it has to come to. */
  function begin() {
    visited = [];
    document.activeElement?.blur();
    document.addEventListener('focusin', () => visited.push([document.activeElement, fault(document.activeElement)]));
    return stops().length;
  }

  /** What is wrong with how focus is shown. */
  function fault(one) {
    if (one.tabIndex < 0) return []; // from there Tab goes on; it is no place of its own
    const marked = one.type === 'radio' || one.type === 'checkbox' ? (one.closest('.card') ?? one) : one;
    const { outlineStyle, outlineWidth } = getComputedStyle(marked);
    const { top, bottom, height } = one.getBoundingClientRect();
    const words = [];
    if (outlineStyle === 'none' || parseFloat(outlineWidth) === 0) words.push('has no ring');
    if (bottom <= 0 || top >= innerHeight || height === 0) words.push('is out of sight');
    return words.map(what => named(one, `${one.textContent} ${what}`));
  }

  /** Where Tab did not come to, and where it can't be seen that it did. */
  function missed() {
    const group = one => (one.type === 'radio' ? one.name : one);
    const come = new Set(visited.map(([one]) => group(one)));
    const missing = stops().filter(one => !come.has(group(one)));
    return [...missing.map(one => named(one, `${one.textContent || one.ariaLabel || one.name} is not reached`)), ...visited.flatMap(([, faults]) => faults)];
  }

  const PLACES = [['.tools .menu', 'menu'], ['.tools', 'tools'], ['.bar', 'foot'], ['.permission', 'card'], ['.item', 'item'], ['.form', 'form']];
  const TITLES = { 'Pause this task': 'Pause', 'Resume this task': 'Resume' };

  /** Every button that stands for something, and where: what is shown of the task, and its stages, are none. */
  function buttons() {
    return [...document.querySelectorAll('button')]
      .filter(one => one.closest(PLACES.map(([part]) => part).join()) && (seen(one) || one.closest('.menu')))
      .map(element => {
        const where = PLACES.find(([part]) => element.closest(part))[1];
        const words = [...element.childNodes].filter(one => one.nodeName !== 'KBD').map(one => one.textContent).join('').trim();
        const title = where === 'tools' ? (TITLES[element.ariaLabel] ?? '') : words;
        return { element, where: ['card', 'item'].includes(where) && element.matches('.addnote, .mono') ? 'form' : where, title };
      })
      .filter(one => one.title !== '');
  }

  function drawn() {
    return buttons().map(({ element, where, title }) => ({ where, title, primary: element.matches('.btn.p') }));
  }

  /** What comes of the button with this title: what was ordered, whether words were asked for, what is said then. */
  async function order(title) {
    const near = ['card', 'item', 'foot', 'menu', 'tools', 'form'];
    const [found] = buttons().filter(one => one.title === title).sort((a, b) => near.indexOf(a.where) - near.indexOf(b.where));
    if (!found) throw new Error(`there is no button ${title}`);
    sent.length = 0;
    found.element.click();
    const box = [...document.querySelectorAll('.say textarea')].find(seen);
    if (box) {
      box.value = 'So and so.';
      box.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true, bubbles: true, cancelable: true }));
    }
    await new Promise(done => setTimeout(done));
    const status = document.querySelector('.bar [role=status]')?.textContent ?? '';
    return { asked: Boolean(box), given: sent.filter(one => one.type === 'give'), status };
  }

  return { drawn, order, contrast, wide, begin, missed };
})();
