/** `plinth doctor --running`: prints what an operator should look at, as a running server has it. */
import { createAdminCall } from './admin-call.ts'
import type { Call } from './command.ts'
import { findRunningServer } from './running-server.ts'

interface Advice {
  readonly severity: 'high' | 'medium' | 'low'
  readonly title: string
  readonly where: string
  readonly why: string
  readonly fix: string
  readonly code: string | null
}

const indented = (text: string): string => text.replaceAll(/^/gm, '    ')

/** Exits with 1 where something is of high severity. */
export async function printAdvice({ options, terminal }: Call): Promise<number> {
  const { url, serviceKey } = await findRunningServer(options)
  const silent = `The server at ${url} did not respond like a Plinth server.`
  const call = createAdminCall({ url, base: '/api', serviceKey, silent })
  const { items } = await call<{ readonly items: readonly Advice[] }>('GET', '/advice')
  if (options.json !== undefined) terminal.out(JSON.stringify({ items }, null, 2))
  else if (items.length === 0) terminal.out('Nothing to do.')
  else
    for (const { severity, title, where, why, fix, code } of items) {
      terminal.out(`${severity.toUpperCase().padEnd(7)}${where}: ${title}`)
      terminal.out(`  ${why}\n  ${fix}`)
      if (code !== null) terminal.out(indented(code))
    }
  return items.some(({ severity }) => severity === 'high') ? 1 : 0
}
