// Lets xterm.js live under a policy without inline styles. It writes its rules into <style> elements and
// colours into the `style` attributes of spans, through whatever document it finds. Under our policy
// neither has an effect, for anybody; here both are done by way of the CSSOM, which scripts of our own may use.

let done = false;

export function styleByScript(): void {
  if (done) return;
  done = true;
  const create = document.createElement.bind(document);
  document.createElement = (name: string, options?: ElementCreationOptions) =>
    name === "style" ? adoptedSheet(create("template")) : create(name, options);
  HTMLSpanElement.prototype.setAttribute = function setAttribute(name: string, value: string) {
    if (name === "style") this.style.cssText = value;
    else Element.prototype.setAttribute.call(this, name, value);
  };
}

/** An element that shows nothing stands for a sheet, which the document has for as long as it is there. */
function adoptedSheet(element: HTMLElement): HTMLElement {
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
  return element;
}
