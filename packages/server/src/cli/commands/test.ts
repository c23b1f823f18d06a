/** `plinth test`: runs the tests of a project with the test runner of Bun. */
import { spawn } from 'node:child_process'
import { readEnvironment } from '../../config/load.ts'
import type { Command } from '../command.ts'

export const testCommand: Command = {
  name: 'test',
  summary: 'Run the tests of a project',
  operands: ['[filter]'],
  options: {
    name: { value: '<pattern>', help: 'Only tests whose names match this regular expression' },
    timeout: { value: '<ms>', help: 'Time limit of a test (default 5000)' },
    watch: { help: 'Run them again when a file changes' },
  },
  details: `Runs \`bun test\` in the current folder: files such as orders.test.ts, or those whose
paths contain the filter. Tests start servers with testServer() of plinth/testing. Variables
that name databases and keys of a server in use are not passed on.`,
  run({ operands: [filter], options: { name, timeout, watch } }) {
    const args = [
      'test',
      ...(name === undefined ? [] : ['--test-name-pattern', name]),
      ...(timeout === undefined ? [] : ['--timeout', timeout]),
      ...(watch === undefined ? [] : ['--watch']),
      ...(filter === undefined ? [] : [filter]),
    ]
    const child = spawn(process.execPath, args, { stdio: 'inherit', env: { ...testEnvironment(), NODE_ENV: 'test' } })
    const pass = (signal: NodeJS.Signals): void => void child.kill(signal)
    process.on('SIGTERM', pass).on('SIGINT', pass)
    return new Promise((resolve, reject) => {
      child.on('error', reject)
      child.on('exit', (code) => {
        process.off('SIGTERM', pass).off('SIGINT', pass)
        resolve(code ?? 1)
      })
    })
  },
}

const isOfServer = (name: string): boolean => /^(?:PLINTH_|DATABASE_URL$|REDIS_|S3_)/.test(name)

/** Without what a server in use needs, so that no test can reach its data. */
const testEnvironment = () =>
  Object.fromEntries(Object.entries(readEnvironment()).filter(([name]) => !isOfServer(name)))
