/** `plinth types`: from a configuration, and from a server. */
import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openCommandLine } from '../harness/processes/command-line.ts'

const main = join(import.meta.dir, '../../src/main.ts')
const commandLine = openCommandLine([process.execPath, main], 'SIGKILL')

const config = `import { defineConfig } from 'plinth'
export default defineConfig({
  databases: {
    shared: {
      tables: {
        posts: {
          schema: {
            title: { type: 'string', required: true, max: 9 },
            state: { type: 'string', enum: ['open', "it's"], default: 'open' },
            dueAt: { type: 'datetime' },
            tags: { type: 'json', default: [] },
            spot: { type: 'geo', index: true },
            label: { type: 'string', computed: (f) => f.state.lower() },
            secret: { type: 'string' },
          },
          hidden: ['secret'],
        },
        loose: {},
      },
    },
    team: { instance: true, access: () => true, tables: { posts: { schema: { done: { type: 'boolean', default: false } } } } },
  },
  storage: { buckets: { files: {} } },
  rooms: { game: { actions: { move: () => 1 } }, lobby: {} },
  api: { schemaEndpoint: 'authenticated' },
})
`

const declarations = `/**
 * Types of a Plinth server for its clients: \`createClient<Config>(url, …)\`. Written by \`plinth types\`; run it again
 * when the configuration has changed.
 */
export interface Config {
  readonly databases: {
    readonly shared: {
      readonly tables: {
        readonly posts: {
          readonly schema: {
            readonly title: { readonly type: "string"; readonly required: true }
            readonly state: { readonly type: "string"; readonly default: "open"; readonly enum: readonly ["open", "it's"] }
            readonly dueAt: { readonly type: "datetime" }
            readonly tags: { readonly type: "json"; readonly default: object }
            readonly spot: { readonly type: "geo" }
            readonly label: { readonly type: "string"; readonly computed: true }
          }
        }
        readonly loose: {}
      }
    }
    readonly team: {
      readonly instance: true
      readonly tables: {
        readonly posts: {
          readonly schema: {
            readonly done: { readonly type: "boolean"; readonly default: false }
          }
        }
      }
    }
  }
  readonly storage: {
    readonly buckets: {
      readonly files: {}
    }
  }
  readonly rooms: {
    readonly game: {
      readonly actions: {
        readonly move: (room: never, player: never, payload: any) => any
      }
    }
    readonly lobby: {
      readonly actions: {}
    }
  }
}
`

const fileOf = (name: string): string => join(commandLine.folder, name)

/** The address of a server of the configuration above. */
async function serve(env: Record<string, string>): Promise<string> {
  const { stdout } = commandLine.spawn(['dev', '--port', '0', '--host', '127.0.0.1'], env)
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stdout) {
    text += decoder.decode(chunk, { stream: true })
    const url = /^Plinth is ready at (\S+)\n/m.exec(text)?.[1]
    if (url !== undefined) return url
  }
  throw new Error(`The server ended:\n${text}`)
}

test('without a configuration it fails and writes nothing', async () => {
  const { error, code } = await commandLine.run(['types'])
  expect(code).toBe(1)
  expect(error).toStartWith('There is no configuration at plinth.config.ts.')
  expect(existsSync(fileOf('plinth.d.ts'))).toBe(false)
})

test('the types of the configuration are written, and not again while they are the same', async () => {
  writeFileSync(fileOf('plinth.config.ts'), config)
  expect(await commandLine.run(['types'])).toEqual({ out: 'Wrote plinth.d.ts\n', error: '', code: 0 })
  expect(readFileSync(fileOf('plinth.d.ts'), 'utf8')).toBe(declarations)
  expect(existsSync(fileOf('data'))).toBe(false)

  expect(await commandLine.run(['types'])).toEqual({ out: 'plinth.d.ts is up to date.\n', error: '', code: 0 })

  writeFileSync(fileOf('plinth.config.ts'), config.replace('title:', 'headline:'))
  expect((await commandLine.run(['types'])).out).toBe('Wrote plinth.d.ts\n')
  expect(readFileSync(fileOf('plinth.d.ts'), 'utf8')).toBe(declarations.replace('title', 'headline'))
})

test('[FN-20] the functions beside the configuration are read, without a server, its data or values of secrets', async () => {
  const zod = JSON.stringify(Bun.resolveSync('zod', import.meta.dir))
  writeFileSync(fileOf('plinth.config.ts'), config)
  mkdirSync(fileOf('functions'))
  const path = fileOf('functions/index.ts')
  writeFileSync(
    path,
    `import { functionsFor, secret } from 'plinth/functions'
import { z } from ${zod}
const { rpc, webhook, schedule } = functionsFor()
const [input, output] = [z.object({ id: z.string() }), z.object({ ok: z.boolean() })]
export const rename = rpc({ input, output }, () => ({ ok: true }))
export const ticks = rpc({ caller: 'anyone', output: z.number() }, async function* () { yield 1 })
export const internal = rpc({ caller: 'service' }, () => 1)
export const sent = webhook('shared.posts', { url: secret('RECEIVER'), secret: secret('KEY') })
export const nightly = schedule('0 3 * * *', {}, () => 1)
`,
  )
  try {
    expect(await commandLine.run(['types', '--out', 'functions.d.ts'])).toMatchObject({ error: '', code: 0 })
    const rename = '(input: { readonly "id": string }) => { readonly "ok": boolean }'
    expect(readFileSync(fileOf('functions.d.ts'), 'utf8')).toBe(`${declarations}
export interface Functions {
  readonly internal: { readonly kind: 'rpc'; readonly types?: (input?: any) => any }
  readonly rename: { readonly kind: 'rpc'; readonly types?: ${rename} }
  readonly ticks: { readonly kind: 'rpc'; readonly types?: (input?: any) => AsyncIterable<number> }
}
`)
    expect(existsSync(fileOf('data'))).toBe(false)
    writeFileSync(path, `${readFileSync(path, 'utf8')}export const wrong = schedule('0 3 * *', {}, () => 1)\n`)
    const wrong = await commandLine.run(['types', '--out', 'functions.d.ts'])
    expect(wrong).toMatchObject({ code: 1, out: '' })
    expect(wrong.error).toContain('functions/index.ts:10: wrong: cron: "0 3 * *" is not a schedule')
  } finally {
    rmSync(fileOf('functions'), { recursive: true })
  }
})

test('names of sections that only the configuration contains are written too, in a new folder', async () => {
  const sections = `kv: { cache: {} }, vector: { docs: { dimensions: 3 } }, sql: { reports: {} },
    broadcasts: { 'typing:*': {}, news: {} }`
  writeFileSync(fileOf('other.ts'), `export default { ${sections} }`)
  expect((await commandLine.run(['types', '--config', 'other.ts', '--out', 'new/folder/other.d.ts'])).code).toBe(0)
  expect(readFileSync(fileOf('new/folder/other.d.ts'), 'utf8')).toEndWith(`export interface Config {
  readonly broadcasts: {
    readonly news: {}
    readonly "typing:*": {}
  }
  readonly kv: {
    readonly cache: {}
  }
  readonly vector: {
    readonly docs: {}
  }
  readonly sql: {
    readonly reports: {}
  }
}
`)
})

test('a server shows the same types to its service key', async () => {
  const key = 'a-service-key-for-this-test'
  writeFileSync(fileOf('plinth.config.ts'), config)
  const url = await serve({ PLINTH_SERVICE_KEY: key })

  const anonymous = await commandLine.run(['types', '--url', url])
  expect(anonymous.code).toBe(1)
  expect(anonymous.error).toContain(`Give the key of the server at ${url} as PLINTH_SERVICE_KEY.`)
  expect(existsSync(fileOf('plinth.d.ts'))).toBe(false)

  const service = await commandLine.run(['types', '--url', `${url}/`], { PLINTH_SERVICE_KEY: key })
  expect(service).toEqual({ out: 'Wrote plinth.d.ts\n', error: '', code: 0 })
  expect(readFileSync(fileOf('plinth.d.ts'), 'utf8')).toBe(declarations)
})

test('a server without the schema endpoint is reported with the remedy', async () => {
  writeFileSync(fileOf('plinth.config.ts'), config.replace("schemaEndpoint: 'authenticated'", 'schemaEndpoint: false'))
  const url = await serve({})
  const { error, code } = await commandLine.run(['types', '--url', url])
  expect(code).toBe(1)
  expect(error).toContain(`The server at ${url} does not show its schema: set api.schemaEndpoint`)
})

test('an address that is none is a usage error', async () => {
  expect((await commandLine.run(['types', '--url', 'example'])).code).toBe(2)
})
