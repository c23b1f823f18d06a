/** A document without a browser, for the rendering of components. */
import { Window } from 'happy-dom'

const names = ['window', 'document', 'Node', 'Element', 'HTMLElement', 'SVGElement', 'Text', 'Comment'] as const

/** Makes the document global, as the libraries expect it; the rest of the runtime stays as it is. Must be closed. */
export function openDom() {
  const window = new Window({ url: 'http://localhost/' })
  const globals = globalThis as unknown as Record<string, unknown>
  const before = new Map(names.map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]))
  const install = (): void => {
    for (const name of names)
      Object.defineProperty(globals, name, { value: name === 'window' ? window : window[name], configurable: true })
  }
  const remove = (): void => {
    for (const [name, descriptor] of before) {
      delete globals[name]
      if (descriptor) Object.defineProperty(globals, name, descriptor)
    }
  }
  install()
  return {
    /** A new element of the document. */
    container(html = ''): HTMLElement {
      const element = window.document.createElement('div')
      element.innerHTML = html
      window.document.body.append(element)
      return element as unknown as HTMLElement
    },
    /** Resolves as soon as the element is as expected. */
    shown: (element: HTMLElement, isExpected: (text: string) => boolean): Promise<void> =>
      new Promise((resolve) => {
        const check = (): void => {
          if (!isExpected(element.textContent ?? '')) return
          observer.disconnect()
          resolve()
        }
        const observer = new window.MutationObserver(check)
        observer.observe(element as never, { childList: true, characterData: true, attributes: true, subtree: true })
        check()
      }),
    /** Runs `work` without the document, as on a server. */
    async onServer<Result>(work: () => Result | Promise<Result>): Promise<Result> {
      remove()
      try {
        return await work()
      } finally {
        install()
      }
    },
    async close(): Promise<void> {
      remove()
      await window.happyDOM.close()
    },
  }
}
