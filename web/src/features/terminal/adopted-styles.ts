// Lets xterm.js live under a policy without inline styles. It writes its rules into <style> elements
// and some colours into `style` attributes; both are done here by way of the CSSOM, which the policy allows
// to scripts of our own: a rule sheet of the document, and the element's style object.

type Creates = Pick<Document, "createElement">;

/** A document that is ours but for how it makes elements; for `documentOverride`. */
export function documentWithoutInlineStyles(): Document {
  return new Proxy(document, {
    get(target, name) {
      if (name === "createElement") return createElement;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** For what asks the real document nevertheless, while `work` runs. */
export function withoutInlineStyles<T>(work: () => T): T {
  const page = document as Creates;
  page.createElement = createElement;
  try {
    return work();
  } finally {
    // What the prototype has shows again.
    delete (page as Partial<Creates>).createElement;
  }
}

function createElement(name: string, options?: ElementCreationOptions): HTMLElement {
  const element = Document.prototype.createElement.call(document, name, options);
  if (element instanceof HTMLStyleElement) adopt(element);
  else element.setAttribute = setAttribute;
  return element;
}

function setAttribute(this: HTMLElement, name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
}

/** The element stays empty and stands for a sheet that the document adopts. */
function adopt(element: HTMLStyleElement): void {
  const sheet = new CSSStyleSheet();
  Object.defineProperty(element, "textContent", {
    set(text: string) {
      sheet.replaceSync(text);
      if (!document.adoptedStyleSheets.includes(sheet)) document.adoptedStyleSheets.push(sheet);
    },
  });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
    Element.prototype.remove.call(element);
  };
}
