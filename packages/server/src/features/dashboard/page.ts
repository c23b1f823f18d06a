/**
 * The page of the dashboard: the built files of `packages/dashboard`, which the build puts into the folder `dashboard/`
 * of this package. Each view has a nonce of its own in its policy, so that nothing but the page's own files runs.
 */
import { randomBytes } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { notFound } from '../../errors.ts'
import { type Endpoint, endpoint, type Params, type Reply } from '../../http/endpoint.ts'
import { bytes } from '../../http/replies/reply.ts'
import { dashboardPath } from '../../http/security/dashboard-access.ts'
import { dashboardAssetsMax } from '../../limits/dashboard.ts'

/** Beside `src` here, and beside the compiled modules in the published package. */
const builtFolder = fileURLToPath(new URL('../../../dashboard/', import.meta.url))

/** What the build writes where the nonce of a view belongs. */
const noncePlaceholder = '__CSP_NONCE__'

const contentTypes: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
}

/** By preference. */
const encodings = [
  { name: 'br', suffix: '.br' },
  { name: 'gzip', suffix: '.gz' },
] as const

type Bytes = Uint8Array<ArrayBuffer>

/** The files of one build. */
interface Build {
  /** Of `index.html`, in milliseconds since 1970: a later build has another one. */
  readonly builtAtMs: number
  /** The page, split where the nonce belongs. */
  readonly page: readonly string[]
  /** By file name, the compressed ones too. */
  readonly assets: ReadonlyMap<string, Bytes>
}

/** Null without a build. */
async function readBuild(folder: string, known: Build | null): Promise<Build | null> {
  const index = join(folder, 'index.html')
  const builtAtMs = await stat(index).then(
    ({ mtimeMs }) => mtimeMs,
    () => null,
  )
  if (builtAtMs === null || builtAtMs === known?.builtAtMs) return builtAtMs === null ? null : known
  const names = await readdir(join(folder, 'assets')).catch(() => [])
  if (names.length > dashboardAssetsMax) throw new Error(`${folder} has more than ${dashboardAssetsMax} files`)
  const assets = await Promise.all(
    names.map(async (name) => [name, new Uint8Array(await readFile(join(folder, 'assets', name)))] as const),
  )
  return { builtAtMs, page: (await readFile(index, 'utf8')).split(noncePlaceholder), assets: new Map(assets) }
}

const policyOf = (nonce: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' blob:",
    "connect-src 'self'",
    // Previews of mails; every other page refuses frames.
    "frame-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
  ].join('; ')

const pageHeaders = (nonce: string): Readonly<Record<string, string>> => ({
  'Content-Security-Policy': policyOf(nonce),
  'Cache-Control': 'no-store',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'Referrer-Policy': 'no-referrer',
})

const htmlType = 'text/html; charset=utf-8'
const nonceBytes = 16

const notBuilt = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Dashboard</title>
<h1>The dashboard is not built</h1>
<p>In the repository, <code>npm start</code> and <code>npm run build</code> build it.</p>
<p>The published package contains it.</p>
</html>
`

export interface PageDeps {
  /** In place of the folder of the package. */
  readonly folder?: string | undefined
}

export function createPage({ folder = builtFolder }: PageDeps): readonly Endpoint[] {
  let build: Promise<Build | null> = Promise.resolve(null)
  /** The newest build. The files are read once for each build, by the first request. */
  const getBuild = (): Promise<Build | null> => {
    build = build.catch(() => null).then((known) => readBuild(folder, known))
    return build
  }

  async function servePage(): Promise<Reply> {
    const nonce = randomBytes(nonceBytes).toString('base64')
    const found = await getBuild()
    return {
      status: found ? 200 : 503,
      text: found ? found.page.join(nonce) : notBuilt,
      contentType: htmlType,
      headers: pageHeaders(nonce),
    }
  }

  async function serveAsset({ file = '' }: Params, headers: Headers): Promise<Reply> {
    const assets = (await getBuild())?.assets
    const contentType = contentTypes[extname(file)]
    const plain = assets?.get(file)
    if (!assets || !plain || contentType === undefined) throw notFound('Path')
    const accepted = headers.get('accept-encoding') ?? ''
    const coding = encodings.find(({ name, suffix }) => acceptsCoding(accepted, name) && assets.has(file + suffix))
    return bytes(coding ? (assets.get(file + coding.suffix) ?? plain) : plain, 200, {
      'Content-Type': contentType,
      // The name contains a hash of the content.
      'Cache-Control': 'public, max-age=31536000, immutable',
      'Cross-Origin-Resource-Policy': 'same-origin',
      Vary: 'Accept-Encoding',
      ...(coding ? { 'Content-Encoding': coding.name } : {}),
    })
  }

  const common = {
    method: 'GET',
    tag: 'Dashboard',
    credentials: 'public',
    rateLimit: 'global',
    // The state of a view is in its URL.
    allowsUnknownQuery: true,
  } as const
  return [
    endpoint({
      ...common,
      name: 'dashboard.page',
      paths: [dashboardPath, `${dashboardPath}/`],
      summary: 'Get the dashboard',
      replies: { 200: { description: 'An HTML page' } },
      handle: servePage,
    }),
    endpoint({
      ...common,
      name: 'dashboard.view',
      paths: [`${dashboardPath}/:path+`],
      summary: 'Get the dashboard at one of its views',
      replies: { 200: { description: 'An HTML page' } },
      handle({ params: { path = '' } }) {
        // These are endpoints and files, of which there is none with this path.
        if (/^(?:api|assets)(?:\/|$)/.test(path)) throw notFound('Path')
        return servePage()
      },
    }),
    endpoint({
      ...common,
      name: 'dashboard.asset',
      paths: [`${dashboardPath}/assets/:file`],
      summary: 'Get a file of the dashboard',
      replies: { 200: { description: 'The file' } },
      handle: ({ params, headers }) => serveAsset(params, headers),
    }),
  ]
}

/** Whether `Accept-Encoding` lists a coding, and not with a quality of zero. */
const acceptsCoding = (header: string, name: string): boolean =>
  header.split(',').some((entry) => {
    const [coding = '', quality = 'q=1'] = entry.split(';').map((part) => part.trim().toLowerCase())
    return coding === name && !/^q=0(?:\.0*)?$/.test(quality)
  })
