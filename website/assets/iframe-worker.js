/* Browsers start no worker of a page that was opened from disk; the search then runs in a hidden frame instead. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.queue = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "Search";
      document.body.append(frame);
      const inside = frame.contentWindow;
      const told = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        this.onmessage?.(event);
      };
      inside.postMessageOut = told;
      inside.document.open();
      inside.document.write(
        "<script>" +
          "var postMessage = (data) => setTimeout(() => postMessageOut(data));" +
          "var importScripts = (...urls) => Promise.all(urls.map((url) => new Promise((done) => {" +
          "const script = document.createElement('script'); script.src = url; script.onload = done;" +
          "document.head.append(script); })));" +
          "</" + "script><script src=\"" + url + "\"></" + "script>"
      );
      inside.document.close();
      this.inside = inside;
      frame.addEventListener("load", () => {
        this.ready = true;
        this.queue.splice(0).forEach((data) => this.deliver(data));
      });
    }
    deliver(data) {
      const event = new MessageEvent("message", { data });
      this.inside.dispatchEvent(event);
    }
    postMessage(data) {
      if (this.ready) this.deliver(data);
      else this.queue.push(data);
    }
    terminate() {}
  };
}
