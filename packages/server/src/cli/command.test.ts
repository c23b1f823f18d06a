import { describe, expect, test } from 'bun:test'
import { type Command, formatHelp, parseCall, UsageError } from './command.ts'
import { runCommandLine } from './commands.ts'
import { describeFailure } from './failure.ts'

const command: Command = {
  name: 'paint',
  summary: 'Paint a wall',
  operands: ['<wall>', '[color]'],
  options: { brush: { value: '<width>', help: 'How wide' }, dry: { help: 'Only say what would be done' } },
  details: 'Walls are patient.',
  run: () => 0,
}

describe('a call', () => {
  test.each<[words: string[], options: object, operands: string[]]>([
    [['north'], {}, ['north']],
    [['north', 'red', '--brush', '5'], { brush: '5' }, ['north', 'red']],
    [['--brush=5', '--dry', 'north'], { brush: '5', dry: '' }, ['north']],
    [['--brush', 'a=b', '--brush', 'c', 'north'], { brush: 'c' }, ['north']],
    [['--', '--north'], {}, ['--north']],
  ])('%j', (words, options, operands) => {
    expect(parseCall(command, words)).toEqual({ options, operands } as ReturnType<typeof parseCall>)
  })

  test.each([[['--help']], [['-h']], [['north', '--help']], [['--help', 'a', 'b', 'c']]])(
    '%j asks for help',
    (words) => {
      expect(parseCall(command, words)).toBeNull()
    },
  )

  test.each<[words: string[], message: string]>([
    [[], '`plinth paint` needs <wall>.'],
    [['a', 'b', 'c'], '`plinth paint` does not take "c".'],
    [['a', '--bursh', '5'], '--bursh is not an option of `plinth paint`. Did you mean "--brush"?'],
    [['a', '--constructor'], '--constructor is not an option of `plinth paint`.'],
    [['a', '-b', '5'], '-b is not an option of `plinth paint`.'],
    [['a', '--brush'], '--brush needs a value: --brush <width>'],
    [['a', '--brush='], '--brush needs a value: --brush <width>'],
    [['a', '--brush', '--dry'], '--brush needs a value: --brush <width>'],
    [['a', '--dry=yes'], '--dry takes no value.'],
  ])('%j is refused', (words, message) => {
    expect(() => parseCall(command, words)).toThrow(new UsageError(message))
  })
})

test('the help of a command', () => {
  expect(formatHelp(command)).toBe(`Paint a wall.

Usage: plinth paint <wall> [color] [options]

Options:
  --brush <width>  How wide
  --dry            Only say what would be done
  --help           Show this text

Walls are patient.`)
})

describe('a command line', () => {
  async function run(...words: string[]) {
    const out: string[] = []
    const error: string[] = []
    const terminal = { out: (text: string) => out.push(text), error: (text: string) => error.push(text) }
    return { code: await runCommandLine(words, terminal), out: out.join('\n'), error: error.join('\n') }
  }

  test.each([[], ['help'], ['--help'], ['-h']])('the overview %#', async (...words) => {
    const { code, out, error } = await run(...words)
    expect({ code, error }).toEqual({ code: 0, error: '' })
    for (const name of ['dev', 'start', 'init', 'migrate', 'token', 'help', 'version'])
      expect(out).toContain(`\n  ${name} `)
  })

  test.each(['dev', 'start', 'init', 'migrate', 'token', 'help', 'version'])(
    '%s has a help text of its own, two ways',
    async (name) => {
      const { code, out } = await run('help', name)
      expect(code).toBe(0)
      expect(out).toContain(`Usage: plinth ${name} `)
      expect(await run(name, '--help')).toEqual({ code: 0, out, error: '' })
    },
  )

  test.each<[words: string[], message: string]>([
    [['strat'], '"strat" is not a command. Did you mean "start"?'],
    [
      ['serve'],
      '"serve" is not a command. Available: dev, start, init, migrate, types, users, audit, keys, secrets, rooms, functions, import, export, explain, rules, token, test, backup, restore, verify, doctor, help, version.',
    ],
    [
      ['--port', '5'],
      '--port comes after a command. Available: dev, start, init, migrate, types, users, audit, keys, secrets, rooms, functions, import, export, explain, rules, token, test, backup, restore, verify, doctor, help, version.',
    ],
    [['help', 'strat'], '"strat" is not a command. Did you mean "start"?'],
    [['token', 'a', '--claims', '[]'], '--claims must be a JSON object, such as \'{"teams":["a"]}\'.'],
    [['token', 'a', '--claims', '{'], '--claims must be a JSON object, such as \'{"teams":["a"]}\'.'],
    [['token', 'a', '--expires', 'soon'], '--expires: must be a duration such as "30s", "15m", "12h" or "7d".'],
  ])('%j is refused as invalid usage', async (words, message) => {
    expect(await run(...words)).toEqual({ code: 2, out: '', error: `${message}\nSee \`plinth help\`.` })
  })
})

describe('a failure', () => {
  const named = (name: string, message: string) => Object.assign(new Error(message), { name })

  test('with a known cause is described in one sentence', () => {
    expect(describeFailure(named('ConfigError', 'a: is missing'))).toBe('a: is missing')
    expect(describeFailure(named('SchemaError', 'The data does not fit'))).toBe('The data does not fit')
    const denied = { code: 'EACCES', syscall: 'mkdir' }
    expect(describeFailure(Object.assign(new Error("EACCES: permission denied, mkdir '/x'"), denied))).toBe(
      "EACCES: permission denied, mkdir '/x'",
    )
    expect(describeFailure(Object.assign(new Error('Failed'), { code: 'EADDRINUSE' }))).toStartWith(
      'The port is in use.',
    )
  })

  test('without a known cause is shown with its stack', () => {
    expect(describeFailure(new TypeError('x is undefined'))).toContain('command.test.ts')
  })
})
