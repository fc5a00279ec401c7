// Parts of all views: the connection, messages, buttons, and the renewal of the data.

import { call, follow } from "./server.js";
import { morph } from "./morph.js";

const $ = (id) => document.getElementById(id);
const RENEW_MS = 5000;

/** Creates an element with properties and children. Text stays text. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties))
    key.includes("-") ? made.setAttribute(key, value) : (made[key] = value);
  made.append(...children);
  return made;
}

/** Shows a message above the view. `action`: an extra button, as text and function. */
export function notice(kind, text, details, action) {
  const sign = { good: "● ", bad: "✖ ", fair: "▲ " }[kind];
  const box = element("div", { className: `notice ${kind}` }, element("p", {}, sign + text));
  if (details) box.append(element("pre", { tabIndex: 0, "aria-label": "Details" }, details));
  const buttons = element("p", { className: "actions" });
  if (action) buttons.append(button(action[0], action[1]));
  if (kind === "bad") buttons.append(button("Copy", () => navigator.clipboard?.writeText(`${text}\n${details ?? ""}`)));
  buttons.append(button("Close", clear));
  box.append(buttons);
  $("notice").replaceChildren(box);
}

const clear = () => $("notice").replaceChildren();
const button = (text, onclick) => element("button", { type: "button", className: "quiet", onclick }, text);

/** Shows the error of a request. */
export const failed = (problem) => notice("bad", problem.message, problem.details);

/** Asks before an instruction that is hard to take back. */
function confirmed(text, verb) {
  const dialog = element("dialog", { "aria-labelledby": "question" });
  const choose = (choice) => () => dialog.close(choice);
  dialog.append(
    element("p", { id: "question" }, text),
    element(
      "p",
      { className: "actions" },
      element("button", { type: "button", className: "danger", onclick: choose("yes") }, verb),
      element("button", { type: "button", className: "quiet", autofocus: true, onclick: choose("") }, "Cancel"),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => (dialog.remove(), resolve(dialog.returnValue === "yes"));
  });
}

// The data of a view is part of its page. It is renewed from the same page: `live`, and parts beside forms.
let renewing;
export async function renew() {
  const parts = document.querySelectorAll("[id^=live]");
  if (!parts.length || renewing) return;
  renewing = true;
  try {
    const response = await fetch(location.href, { cache: "no-store" });
    if (response.redirected) return location.assign("/login");
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (page.getElementById("live")) for (const part of parts) morph(part, page.getElementById(part.id)), show(part);
    else if (!response.ok) notice("bad", page.querySelector(".state p")?.textContent ?? "The view cannot be renewed.");
  } catch {
    connection("lost");
  } finally {
    renewing = false;
  }
}

/** Writes times in the language and time zone of the browser. */
function show(part) {
  for (const time of part.querySelectorAll("time[data-time]")) {
    const date = new Date(time.dataset.time * 1000);
    time.dateTime = date.toISOString();
    time.textContent = date.toLocaleString();
  }
}

// The state of the connection.
let seen;
function connection(state) {
  if (document.body.dataset.connection === state) return;
  document.body.dataset.connection = state;
  if (state === "live") return $("connection").replaceChildren();
  const since = seen ? ` What you see is from ${seen.toLocaleTimeString()}.` : "";
  $("connection").replaceChildren(
    element("p", {}, `✖ Not connected to the server.${since} Trying again…`),
    button("Try now", () => (stream?.open(), renew())),
  );
}

function alive() {
  seen = new Date();
  connection("live");
}

/** Undoes a change. `revision`: the present text. Without `discard_edits`, edits by hand are kept, and shown. */
async function undo(id, revision, discard_edits) {
  try {
    await call("POST", "/api/config/undo", { id, revision, discard_edits });
  } catch (problem) {
    if (problem.status !== 409 || !problem.details) throw problem;
    const discard = () => undo(id, revision, true).catch(failed);
    return notice("fair", problem.message, problem.details, ["Undo, and discard these edits", discard]);
  }
  notice("good", "The change is undone.");
  // The editor has the text before.
  if ($("settings")) return location.reload();
  await renew();
}

/** Reports a saved change, with a button that undoes it. */
export function saved(text, reply) {
  const undone = () => undo(undefined, reply.revision).catch(failed);
  const action = reply.can_undo ? ["Undo", undone] : undefined;
  notice(reply.findings.length ? "fair" : "good", text, reply.findings.map((one) => one.message).join("\n"), action);
}

/** Edits the configuration, and reports that with a button that undoes it. */
async function change(text, edit) {
  saved(text, await call("POST", "/api/config/edit", { edits: [edit] }));
  await renew();
}

const INSTRUCTIONS = {
  async logout() {
    await call("POST", "/logout");
    location.assign("/login");
  },
  async reload() {
    notice("good", (await call("POST", "/api/reload")).message);
  },
  async stop() {
    notice("fair", (await call("POST", "/api/stop")).message);
  },
  async refresh() {
    await renew();
  },
  async drain({ name }) {
    notice("good", (await call("POST", "/api/upstreams/drain", { address: name })).message);
    await renew();
  },
  async enable({ name }) {
    notice("good", (await call("POST", "/api/upstreams/enable", { address: name })).message);
    await renew();
  },
  async remove({ name }) {
    await change(`${name} is removed from the configuration. Its files stay.`, { op: "remove", path: ["site", name] });
    if (!$("live")) location.assign("/websites");
  },
  disable: ({ name }) => change(`${name} is not served any more.`, { op: "set", path: ["site", name, "enabled"], value: "false" }),
  serve: ({ name }) => change(`${name} is served again.`, { op: "remove", path: ["site", name, "enabled"] }),
  async undo({ id, revision }) {
    await undo(Number(id), revision);
  },
  async unsave({ revision }) {
    await call("POST", "/api/config/undo", { revision });
    location.assign("/websites");
  },
};

document.addEventListener("click", async (event) => {
  const pressed = event.target.closest?.("button[data-do]");
  const instruction = INSTRUCTIONS[pressed?.dataset.do];
  if (!instruction || pressed.ariaBusy === "true") return;
  if (pressed.dataset.confirm && !(await confirmed(pressed.dataset.confirm, pressed.textContent))) return;
  pressed.ariaBusy = "true";
  try {
    await instruction(pressed.dataset);
  } catch (problem) {
    failed(problem);
  } finally {
    pressed.ariaBusy = "false";
  }
});

// A view with figures of its own listens to these events.
const sample = (name) => (detail) => (alive(), document.dispatchEvent(new CustomEvent(name, { detail })));
const stream = follow("/events", { history: sample("history"), message: sample("sample") }, (state) => {
  state === "live" ? alive() : connection(state);
});
if ($("live") && !["/doctor", "/history", "/php"].includes(location.pathname))
  setInterval(() => document.hidden || document.body.dataset.connection === "lost" || renew(), RENEW_MS);
show(document);
// A reload of the page must not report a change again.
const own = new URL(location);
for (const name of ["from", "result", "saved"]) own.searchParams.delete(name);
history.replaceState(null, "", own);

const VIEWS = { "/": "overview", "/logs": "logs", "/settings": "settings", "/websites/add": "websites", "/websites/edit": "site", "/websites/copy": "site" };
if (VIEWS[location.pathname] && !document.querySelector("[data-state=error]")) import(`./${VIEWS[location.pathname]}.js`);
