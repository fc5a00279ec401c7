// Form that adds a website: suggests a name. The rest is as in the form that edits one.

import "./site.js";

const form = document.getElementById("website");
const { root, name } = form.elements;

/** Suggests a name from the folder: its last part, below `localhost` if it has no dot. */
form.addEventListener("input", ({ target }) => {
  if (target === name) name.dataset.typed = name.value;
  if (target !== root || name.dataset.typed) return;
  const last = root.value.trim().replace(/\/+$/, "").split("/").pop().toLowerCase().replace(/[^a-z0-9.-]+/g, "-").replace(/^[-.]+|[-.]+$/g, "");
  name.value = last && (last.includes(".") ? last : `${last}.localhost`);
});
