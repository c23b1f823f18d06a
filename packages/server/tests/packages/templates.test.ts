/** The templates of create-plinth: created, installed from the tarballs, type-checked, built and started. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '../../../../scripts/servers/private-server.ts'
import { openProject, type Project, readyUrl } from '../harness/packages/project.ts'
import { makeTarballs } from '../harness/packages/tarballs.ts'
import { describeInBrowser, openChromium } from '../harness/processes/chromium.ts'

const tarballs = makeTarballs()
const unpacked = mkdtempSync(join(tmpdir(), 'plinth-create-'))
tarballs.unpack(tarballs.create, unpacked)
const { version } = JSON.parse(readFileSync(join(unpacked, 'package.json'), 'utf8')) as { version: string }

const projects: Project[] = []
const newProject = (): Project => {
  const project = openProject()
  projects.push(project)
  return project
}

afterEach(async () => {
  for (const project of projects.splice(0)) await project.remove()
})
afterAll(() => {
  tarballs.remove()
  rmSync(unpacked, { recursive: true })
})

/** Runs the program in a folder, without a terminal. */
function create(cwd: string, ...args: readonly string[]) {
  const { exitCode, stdout, stderr } = Bun.spawnSync(['node', join(unpacked, 'dist/main.js'), ...args], { cwd })
  return { code: exitCode, out: stdout.toString(), error: stderr.toString() }
}

/** A command in the folder `app` of a project. */
const inApp = (command: string): readonly string[] => ['sh', '-c', `cd app && exec ${command}`]

/** Creates the folder `app` from a template and installs its packages. */
function install(project: Project, template: string): void {
  expect(create(project.folder, 'app', '--template', template)).toMatchObject({ code: 0, error: '' })
  // The server depends on the client, also where the template does not use it.
  const files = [tarballs.plinth.path, tarballs.client.path]
  const options = '--prefer-offline --no-audit --no-fund --ignore-scripts'
  project.run(inApp(`npm install ${options} ${files.map((path) => `"${path}"`).join(' ')}`))
}

function createInstalled(template: string): Project {
  const project = newProject()
  install(project, template)
  return project
}

describe('the program', () => {
  test.each(['react-vite', 'node', 'none'])('writes all files of %s', (template) => {
    const { folder } = newProject()
    const { out } = create(folder, 'My App', '-t', template)
    expect(out).toContain(`Created My App from the template ${template}.`)
    expect(out).toContain('  cd My App\n  npm install\n  npm run dev\n')
    const app = join(folder, 'My App')
    const expected = ['.gitignore', 'AGENTS.md', 'README.md', 'package.json', 'plinth.config.ts', 'tsconfig.json']
    expect(readdirSync(app)).toContainValues(expected)
    const manifest = JSON.parse(readFileSync(join(app, 'package.json'), 'utf8'))
    expect(manifest).toMatchObject({
      name: 'my-app',
      private: true,
      scripts: { dev: expect.stringContaining('plinth dev') },
      dependencies: { plinth: `^${version}` },
    })
    expect(readFileSync(join(app, '.gitignore'), 'utf8')).toContain('data/\n')
  })

  test('accepts an empty folder and a new Git repository', () => {
    const { folder } = newProject()
    mkdirSync(join(folder, 'app/.git'), { recursive: true })
    expect(create(folder, 'app').code).toBe(0)
    expect(existsSync(join(folder, 'app/vite.config.ts'))).toBe(true)
  })

  test.each([
    [['app'], 'app is not empty. Name a new or an empty folder.\n'],
    [['new', '--template', 'vue'], 'Unknown template: vue. Choose one of react-vite, node, none.\n'],
    [['new', 'old'], 'Unexpected argument: old\n'],
    [['new', '--tempalte', 'node'], "Unknown option '--tempalte'"],
    [[], 'The folder is missing: npm create plinth@latest app\n'],
  ])('refuses %p and writes nothing', (args, message) => {
    const { folder } = newProject()
    mkdirSync(join(folder, 'app'))
    writeFileSync(join(folder, 'app/notes.txt'), 'mine')
    const { code, error } = create(folder, ...args)
    expect(code).toBe(1)
    expect(error).toContain(message)
    expect(readdirSync(folder).sort()).toEqual(['app', 'package.json'])
    expect(readdirSync(join(folder, 'app'))).toEqual(['notes.txt'])
  })

  /** Runs the program at a terminal; answers each prompt as it appears. Resolves with the exit code. */
  async function createAtTerminal(cwd: string, answers: readonly string[]) {
    const waiting = [...answers]
    const decoder = new TextDecoder()
    let out = ''
    const child = Bun.spawn(['node', join(unpacked, 'dist/main.js')], {
      cwd,
      terminal: {
        data(terminal, data) {
          const text = decoder.decode(data, { stream: true })
          out += text
          if (/\): /.test(text) && waiting.length > 0) terminal.write(waiting.shift() ?? '')
        },
      },
    })
    return { code: await child.exited, out }
  }

  test('prompts for the folder and the template at a terminal', async () => {
    const { folder } = newProject()
    const { code, out } = await createAtTerminal(folder, ['web\r', 'vue\r', '2\r'])
    expect(out).toContain('There is no template vue.')
    expect(out).toContain('Created web from the template node.')
    expect(code).toBe(0)
    expect(existsSync(join(folder, 'web/src/main.ts'))).toBe(true)
  })

  test('creates nothing when a prompt is canceled', async () => {
    const { folder } = newProject()
    const { code, out } = await createAtTerminal(folder, ['web\r', '\x03'])
    expect(out).toContain('Canceled; nothing was created.')
    expect(code).toBe(1)
    expect(readdirSync(folder)).toEqual(['package.json'])
  })

  test('prints its help', () => {
    expect(create(unpacked, '--help')).toMatchObject({ code: 0, out: expect.stringContaining('react-vite') })
  })
})

test('none: its types are right, and the server starts', async () => {
  const project = createInstalled('none')
  project.run(inApp('npm run check'))
  const url = await readyUrl(project.start(inApp('npm run dev'), { PLINTH_PORT: '0' }))
  expect((await fetch(`${url}/api/health`)).status).toBe(200)
})

test('node: its types are right, and two programs share a live list', async () => {
  const project = createInstalled('node')
  project.run(inApp('npm run check'))
  const url = await readyUrl(project.start(inApp('npm run dev'), { PLINTH_PORT: '0' }))
  const [first, second] = [1, 2].map(() => project.start(inApp('npm start'), { PLINTH_URL: url }))
  if (!first || !second) throw new Error('two programs must run')
  await first.out.until('Type a task and press Enter.')
  await second.out.until('Type a task and press Enter.')
  first.write('Water the plants\n')
  await second.out.until('· Water the plants')
  await first.out.until('· Water the plants')
  expect(await Promise.all([first.finish(), second.finish()])).toEqual([0, 0])
})

describe('react-vite', () => {
  const app = openProject()
  const url = { server: '' }

  beforeAll(async () => {
    install(app, 'react-vite')
    url.server = await readyUrl(app.start(inApp('npx plinth dev'), { PLINTH_PORT: '0' }))
    app.run(inApp('npm run build'), { VITE_PLINTH_URL: url.server })
  })
  afterAll(() => app.remove())

  test('its types are right, and the page contains the client and nothing of the server', () => {
    const [script] = readdirSync(join(app.folder, 'app/dist/assets')).filter((name) => name.endsWith('.js'))
    const bundle = readFileSync(join(app.folder, 'app/dist/assets', script ?? ''), 'utf8')
    expect(bundle).toContain('signInAnonymously')
    expect(bundle).not.toContain('schema:')
  })

  test('`npm run dev` serves the page and the server', async () => {
    const data = { PLINTH_PORT: '0', PLINTH_DATA: 'data-of-dev' }
    const dev = app.start(inApp('npm run dev'), data)
    expect((await fetch(`${await readyUrl(dev)}/api/health`)).status).toBe(200)
    // Vite and the server become ready in either order.
    if (!dev.out.text().includes('Local:')) await dev.out.until('Local:')
  })

  describeInBrowser('the page of react-vite', 'the page', (chromium) => {
    test('signs a guest in and shows tasks of others live', async () => {
      const port = findFreePort()
      const page = app.start(inApp(`npx vite preview --host 127.0.0.1 --port ${port} --strictPort`))
      await page.out.until('Local:')
      const browser = await openChromium(chromium)
      try {
        await browser.open(`http://127.0.0.1:${port}/`)
        await browser.run(async () => {
          const find = async (selector: string): Promise<HTMLElement> => {
            for (;;) {
              const found = document.querySelector<HTMLElement>(selector)
              if (found) return found
              await new Promise(requestAnimationFrame)
            }
          }
          ;(await find('.sign-in .primary')).click()
          await find('.status.live')
        })
        const { accessToken, user } = await (
          await fetch(`${url.server}/api/auth/signin/anonymous`, { method: 'POST' })
        ).json()
        const inserted = await fetch(`${url.server}/api/db/shared/tables/tasks`, {
          method: 'POST',
          headers: { authorization: `Bearer ${accessToken}`, 'content-type': 'application/json' },
          body: JSON.stringify({ title: 'From elsewhere', authorId: user.id }),
        })
        expect(inserted.status).toBe(201)
        const text = await browser.run(async () => {
          for (;;) {
            const item = document.querySelector('li')
            if (item) return item.textContent
            await new Promise(requestAnimationFrame)
          }
        })
        expect(text).toBe('From elsewhereby another user')
      } finally {
        await browser.close()
      }
    })
  })
})
