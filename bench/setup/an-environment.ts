/** A machine for the tests of reports, which any of them may change. */
import type { Environment } from './environment.ts'

export const anEnvironment: Environment = {
  date: '2026-01-02',
  processor: 'some processor',
  cores: 2,
  memoryGiB: 4,
  kernel: '6.1',
  fileSystem: 'ext4',
  bun: '1.4.5',
  sqlite: '3.50.0',
}
