/**
 * A browser whose pages must be faultless: any console error, page error, report of the content security policy or
 * failed request is collected, and `expectNoFaults` throws for it.
 */
import { mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { source as axeSource } from 'axe-core'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

export interface Sheet {
  readonly page: Page
  readonly context: BrowserContext
  /** What went wrong since the last call. */
  takeFaults(): string[]
  /** Ignores faults that match, such as those of a server that was stopped on purpose. */
  allow(pattern: RegExp): void
  close(): Promise<void>
}

/** Where screenshots are written; `PLINTH_TEST_SCREENSHOTS` names another folder. */
export const screenshotFolder = process.env.PLINTH_TEST_SCREENSHOTS ?? join(tmpdir(), 'plinth-dashboard-screenshots')

/** Starts the Chromium at `program`, in which nothing but the pages sends requests. Must be closed. */
export const openBrowser = (program: string): Promise<Browser> =>
  chromium.launch({
    executablePath: program,
    headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-quic'],
  })

/** What the page itself reports: violations of its policy, also in report-only headers. */
function reportViolations(): void {
  document.addEventListener('securitypolicyviolation', (event) => {
    console.error(`CSP: ${event.violatedDirective} blocked ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`)
  })
}

export async function openSheet(browser: Browser, options: BrowserContextOptions = {}): Promise<Sheet> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
  const page = await context.newPage()
  const faults: string[] = []
  const allowed: RegExp[] = []
  const add = (fault: string): void => {
    if (!allowed.some((pattern) => pattern.test(fault))) faults.push(fault)
  }
  await page.addInitScript(reportViolations)
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') add(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => add(`page error: ${error.stack ?? error.message}`))
  page.on('requestfailed', (request) => {
    // The page cancels what it no longer needs.
    if (request.failure()?.errorText !== 'net::ERR_ABORTED')
      add(`failed: ${request.url()} ${request.failure()?.errorText}`)
  })
  page.on('response', (response) => {
    if (response.status() >= 400) add(`${response.status()} ${response.request().method()} ${response.url()}`)
  })
  return {
    page,
    context,
    takeFaults: () => faults.splice(0),
    allow: (pattern) => void allowed.push(pattern),
    close: () => context.close(),
  }
}

export function expectNoFaults({ takeFaults }: Sheet): void {
  const faults = takeFaults()
  if (faults.length > 0) throw new Error(`The page has faults:\n${faults.join('\n')}`)
}

interface Violation {
  readonly id: string
  readonly impact?: string | null
  readonly help: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
}

/** Findings of axe that keep someone from using the page. */
export async function findBarriers({ page }: Sheet): Promise<string[]> {
  // Evaluated by the debugger, which the content security policy of the page does not bind.
  await page.evaluate(axeSource)
  const violations = (await page.evaluate(
    `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)`,
  )) as Violation[]
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, help, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${help}\n${html}\n${failureSummary}`),
    )
}

/** Widths of desktops and phones. */
const sizes = { wide: { width: 1280, height: 800 }, narrow: { width: 390, height: 844 } }

/**
 * Writes `NAME-light.png`, `NAME-dark.png` and `NAME-narrow.png`, and leaves the page wide and light. `height` shows
 * more of a page than a screen does.
 */
export async function takeScreenshots(
  { page }: Sheet,
  name: string,
  { height = sizes.wide.height, ...options }: { fullPage?: boolean; height?: number } = {},
): Promise<void> {
  mkdirSync(screenshotFolder, { recursive: true })
  await page.setViewportSize({ ...sizes.wide, height })
  const take = (kind: string) => page.screenshot({ path: join(screenshotFolder, `${name}-${kind}.png`), ...options })
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
  await take('dark')
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  await take('light')
  await page.setViewportSize({ ...sizes.narrow, height: Math.max(height, sizes.narrow.height) })
  await take('narrow')
  await page.setViewportSize(sizes.wide)
}
