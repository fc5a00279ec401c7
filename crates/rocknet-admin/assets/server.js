// Requests to the server, and the state of the connection to it.

/** Error of a request: `message`, `details` of several lines, and the status; 0 without a response. */
export class Problem extends Error {
  constructor(status, message, details) {
    super(message);
    Object.assign(this, { status, details });
  }
}

/** Sends a request and returns the response. */
export async function send(path, options) {
  try {
    return await fetch(path, { cache: "no-store", ...options });
  } catch {
    throw new Problem(0, "The server does not respond. Nothing is known to have changed.");
  }
}

/** Sends a request of the API and returns its reply. */
export async function call(method, path, body) {
  const options = { method, headers: {} };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const response = await send(path, options);
  const reply = await response.json().catch(() => ({ error: "The reply of the server is cut." }));
  if (response.status === 401 && path !== "/login") location.assign("/login");
  if (!response.ok || reply.error) throw new Problem(response.status, reply.error, reply.details);
  return reply;
}

/** Follows server-sent events while the page is visible. Calls `state` with "live" and "lost". */
export function follow(path, listeners, state) {
  let source, retry;
  const close = () => {
    clearTimeout(retry);
    source?.close();
    source = undefined;
  };
  const open = () => {
    close();
    source = new EventSource(path);
    source.onopen = () => state("live");
    source.onerror = async () => {
      state("lost");
      close();
      // The browser does not say why: a session may have ended.
      const known = await fetch("/api/log-level", { cache: "no-store" }).catch(() => undefined);
      if (known?.status === 401) return location.assign("/login");
      if (!document.hidden) retry = setTimeout(open, 2000);
    };
    for (const [name, listener] of Object.entries(listeners))
      source.addEventListener(name, (event) => listener(JSON.parse(event.data)));
  };
  // Browsers allow few connections to a server, so hidden pages give theirs up.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  if (!document.hidden) open();
  return { open, close };
}
