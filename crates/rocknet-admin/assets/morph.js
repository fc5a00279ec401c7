// Changes a part of the page into a newer one, and keeps its elements: focus, selection and scroll positions stay.

/** Changes `old` into `fresh`. Elements are matched by `data-key` or `id`, else by their order. */
export function morph(old, fresh) {
  for (const { name } of [...old.attributes])
    if (!fresh.hasAttribute(name) && name !== "open" && name !== "aria-busy") old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const keyed = new Map();
  for (const child of old.children) if (key(child)) keyed.set(key(child), child);
  let next = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const match = key(wanted) ? keyed.get(key(wanted)) : next && !key(next) && isAlike(next, wanted) ? next : undefined;
    if (!match) {
      old.insertBefore(document.importNode(wanted, true), next);
      continue;
    }
    if (match !== next) old.insertBefore(match, next);
    else next = next.nextSibling;
    if (match.nodeType === Node.ELEMENT_NODE) morph(match, wanted);
    else if (match.data !== wanted.data) match.data = wanted.data;
  }
  while (next) {
    const extra = next;
    next = next.nextSibling;
    extra.remove();
  }
}

const key = (node) => node.dataset?.key ?? node.id;
const isAlike = (one, other) => one.nodeType === other.nodeType && one.nodeName === other.nodeName;
