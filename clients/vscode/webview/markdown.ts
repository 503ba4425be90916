// Markdown of an agent as elements. It may hold anything: raw HTML is shown as text, nothing is loaded, and a link
// goes to the web or to a file of the project, or is no link.

import MarkdownIt from 'markdown-it';

/** Where a link goes; none if it is not one that may be followed. */
export type Target = { kind: 'web'; href: string } | { kind: 'file'; path: string; line: number };

export const WEB = /^https?:\/\/[^/]/i;
const SCHEME = /^[a-z][a-z0-9+.-]*:/i;

export function targetOf(href: string): Target | undefined {
  // eslint-disable-next-line no-control-regex -- a browser drops these and would then see a scheme
  if (/[\u0000-\u0020\\]/.test(href)) return undefined;
  if (WEB.test(href)) return { kind: 'web', href };
  let path: string;
  try {
    path = decodeURIComponent(href.replace(/[?#].*$/, ''));
  } catch {
    return undefined;
  }
  const fragment = /#L?(\d+)/.exec(href)?.[1] ?? /:(\d+)(?::\d+)?$/.exec(path)?.[1];
  path = path.replace(/(:\d+){1,2}$/, '');
  const outside = path.startsWith('/') || path.split('/').includes('..');
  // eslint-disable-next-line no-control-regex
  if (path === '' || outside || SCHEME.test(path) || /[\u0000-\u001f\\]/.test(path)) return undefined;
  return { kind: 'file', path: path.replace(/^\.\//, ''), line: Number(fragment ?? 0) };
}

const renderer = new MarkdownIt({ html: false, linkify: true });
renderer.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
renderer.validateLink = href => targetOf(href) !== undefined;
renderer.disable('image');

/** HTML with text, emphasis, lists, tables, code and the links that may be followed; nothing else can be in it. */
export function html(text: string): string {
  return renderer.render(text);
}

export function fragment(text: string, follow: (target: Target) => void): DocumentFragment {
  const template = document.createElement('template');
  template.innerHTML = html(text);
  for (const link of template.content.querySelectorAll('a')) {
    const target = targetOf(link.getAttribute('href') ?? '');
    if (!target) {
      link.replaceWith(...link.childNodes);
      continue;
    }
    link.title = target.kind === 'web' ? target.href : target.path;
    link.setAttribute('href', target.kind === 'web' ? target.href : '#');
    link.addEventListener('click', event => {
      event.preventDefault();
      follow(target);
    });
  }
  for (const block of template.content.querySelectorAll('pre, table')) block.setAttribute('tabindex', '0');
  return template.content;
}
