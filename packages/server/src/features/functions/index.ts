/** Functions: the application's server code. Wires the code in force to what invokes it. */
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Config, Settings } from '../../config/config.ts'
import { ConfigError } from '../../config/issues.ts'
import type { Counters } from '../../engines/cluster/cluster.ts'
import type { FunctionHosts } from '../../engines/hosts/hosts.ts'
import type { RunInternally } from '../../http/internal-request.ts'
import type { BeforeHooks } from '../before-hooks.ts'
import type { Feature } from '../feature.ts'
import { FunctionCode } from './code.ts'
import { createFunctionEndpoints } from './endpoints.ts'
import { createFunctionList } from './function-list.ts'
import { createBeforeHooks } from './hooks/before-hooks.ts'
import { createInvoker, type Invoker } from './invoke/invoker.ts'

export interface FunctionsDeps {
  readonly hosts: FunctionHosts
  readonly settings: Pick<Settings, 'projectFolder' | 'environment'>
  readonly config: () => Config
  readonly counters: Counters
  readonly run: RunInternally
  readonly url: () => string
  readonly clock: Clock
  readonly log: Log
}

export interface Functions extends Feature {
  /** Loads the current files. Throws `ConfigError`; the previous code stays in force. */
  reload(): Promise<void>
  readonly code: FunctionCode
  readonly invoker: Invoker
  /** The functions that run before writes. */
  readonly hooks: BeforeHooks
}

/** Serves no function before `configure`. */
export function createFunctions(deps: FunctionsDeps): Functions {
  const { hosts, settings, config, counters, run, url, clock, log } = deps
  const { projectFolder, environment } = settings
  const code = new FunctionCode({ hosts, projectFolder, environment, log })
  const invoker = createInvoker({ hosts, run, secrets: () => code.current.secrets, clock, log })
  const hooks = createBeforeHooks({ declared: () => code.current.hooks, invoker, clock, log })
  let isStarted = false

  return {
    name: 'functions',
    code,
    invoker,
    hooks,
    metrics(metrics) {
      const name = 'functions_before_seconds'
      const help = 'Time by which functions have delayed writes, by table in seconds.'
      metrics.histogram({ name, help, label: 'table', read: () => hooks.times.durations })
    },
    endpoints: [
      ...createFunctionEndpoints({ served: () => code.current.served, invoker, counters, url }),
      createFunctionList({ definitions: () => code.current.definitions, invoker, projectFolder }),
    ],
    /** In development a server starts with code that does not load, to be fixed while it runs. */
    async configure(next) {
      const isFirst = !isStarted
      isStarted = true
      try {
        await code.load(next)
      } catch (error) {
        if (!isFirst || next.mode !== 'development' || !(error instanceof ConfigError)) throw error
        log.error('functions.load_failed', { message: error.message })
      }
    },
    reload: () => code.load(config()),
    close: () => hosts.close(),
  }
}
