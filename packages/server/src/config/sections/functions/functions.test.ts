import { expect, test } from 'bun:test'
import { MiB } from '../../../limits/units.ts'
import { findMistakes, parseConfig } from '../../validate.ts'

const parse = (functions: object) => parseConfig({ functions }, { mode: 'release', rootKey: 'k' }).config.functions

test('[FN-1] the section has defaults', () => {
  expect(parse({})).toEqual({ folder: 'functions', isRequired: false, hosts: 2, memoryBytes: 512 * MiB })
  expect(parse({ folder: 'code', hosts: 4, memory: '1gb' })).toEqual({
    folder: 'code',
    isRequired: true,
    hosts: 4,
    memoryBytes: 1024 * MiB,
  })
})

const mistakes: readonly (readonly [section: object, message: string])[] = [
  [{ folder: '../elsewhere' }, 'functions.folder: must be a folder beside the configuration'],
  [{ folder: '/etc' }, 'functions.folder: must be a folder beside the configuration'],
  [{ hosts: 0 }, 'functions.hosts: must be at least 1'],
  [{ hosts: 17 }, 'functions.hosts: must be at most 16'],
  [{ memory: '1mb' }, 'functions.memory: must be at least 128mb'],
  [{ memroy: '1gb' }, 'functions.memroy: is not known here. Did you mean "memory"?'],
]
for (const [section, message] of mistakes)
  test(`[FN-1] ${JSON.stringify(section)} is refused`, () => {
    expect(findMistakes({ functions: section }, 'k')).toEqual([expect.stringContaining(message)])
  })
