/** A Svelte component, compiled for the page and for the server. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compile, compileModule } from 'svelte/compiler'
import * as stores from '../../src/svelte/index.ts'

interface Mounted {
  /** Changes properties. */
  set(properties: object): void
  unmount(): Promise<void>
}

export interface SvelteApp {
  mount(target: HTMLElement, properties: object): Mounted
  hydrate(target: HTMLElement, properties: object): Mounted
  renderToString(properties: object): string
}

/** Properties are state of a module, so that a test can change them. */
const pageModule = `
import { hydrate, mount, unmount } from 'svelte'
import Component from './component.svelte'
const open = (how) => (target, properties) => {
  const props = $state(properties)
  const app = how(Component, { target, props })
  return { set: (next) => Object.assign(props, next), unmount: () => unmount(app) }
}
export const page = { mount: open(mount), hydrate: open(hydrate) }
`
const serverModule = `
import { render } from 'svelte/server'
import Component from './component.svelte'
export const page = (props) => render(Component, { props }).body
`

async function build(generate: 'client' | 'server', source: string, folder: string) {
  const file = join(folder, `${generate}.js`)
  const entry = join(import.meta.dir, 'svelte-entry.svelte.js')
  const { outputs } = await Bun.build({
    entrypoints: [entry],
    target: generate === 'client' ? 'browser' : 'bun',
    conditions: generate === 'client' ? ['browser', 'development'] : ['development'],
    files: { [entry]: generate === 'client' ? pageModule : serverModule },
    plugins: [
      {
        name: 'svelte',
        setup({ onLoad, onResolve }) {
          onResolve({ filter: /component\.svelte$/ }, () => ({ path: join(import.meta.dir, 'component.svelte') }))
          onLoad({ filter: /component\.svelte$/ }, () => ({
            contents: compile(source, { generate, filename: 'component.svelte' }).js.code,
            loader: 'js',
          }))
          onLoad({ filter: /svelte-entry\.svelte\.js$/ }, () => ({
            contents: compileModule(generate === 'client' ? pageModule : serverModule, { generate }).js.code,
            loader: 'js',
          }))
        },
      },
    ],
  })
  await Bun.write(file, outputs[0] as Blob)
  return (await import(file)).page
}

/** Compiles the component, whose properties include the stores. Needs a document. */
export async function openSvelte(source: string): Promise<SvelteApp> {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-svelte-'))
  try {
    const page = await build('client', source, folder)
    const renderToString = await build('server', source, folder)
    const withStores = (properties: object): object => ({ ...stores, ...properties })
    return {
      mount: (target, properties) => page.mount(target, withStores(properties)),
      hydrate: (target, properties) => page.hydrate(target, withStores(properties)),
      renderToString: (properties) => renderToString(withStores(properties)),
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
