// Signs in with a token, or with the code of a link.

import { call } from "./server.js";

const box = document.getElementById("notice");
const form = document.getElementById("login");

async function login(body) {
  form.ariaBusy = "true";
  try {
    await call("POST", "/login", body);
    location.replace("/");
  } catch (problem) {
    const text = document.createElement("p");
    text.className = "notice bad";
    text.textContent = `✖ ${problem.message}`;
    box.replaceChildren(text);
  } finally {
    form.ariaBusy = "false";
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  login({ token: form.elements.token.value });
});
form.dataset.ready = "";

function useCode() {
  const code = location.hash.slice(1);
  if (!code) return;
  // The code is valid once, and does not belong in the history.
  history.replaceState(null, "", "/login");
  login({ code });
}
// A link that is opened while this page is shown does not load the page again.
addEventListener("hashchange", useCode);
useCode();
