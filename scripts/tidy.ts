/**
 * Checks of the repository itself, beyond compiler, linter and formatter.
 */
import { checkRetiredWords } from './checks/retired-words.ts'
import { checkAdapters, checkBodyReaders, checkCycles, checkFeatures, checkLine, checkRuntime } from './tidy/imports.ts'
import { checkLinks } from './tidy/links.ts'
import type { Repository } from './tidy/repository.ts'
import { checkBanned, checkFolders, checkMachine, checkNames, checkOpening, checkSize } from './tidy/style.ts'

/** Checks by rule; each error names the remedy. */
export const tidyChecks: Readonly<Record<string, (repository: Repository) => string[]>> = {
  'imports go left on the dependency line': checkLine,
  'features do not import each other': checkFeatures,
  'adapters are named only where engines are opened': checkAdapters,
  'modules of the runtime are imported in base, engines and the listener': checkRuntime,
  'one file reads the bodies of requests': checkBodyReaders,
  'imports make no cycle': checkCycles,
  'files and lines have a bound': checkSize,
  'folders have a bound': checkFolders,
  'file names say what a file owns': checkNames,
  'every file of src says what it is for': checkOpening,
  'nothing is left unfinished': checkBanned,
  'nothing belongs to one machine': checkMachine,
  'links lead somewhere': checkLinks,
  'no file contains a retired word': checkRetiredWords,
}

/** Every mistake as a line that begins with its place. */
export const findUntidy = (repository: Repository): string[] =>
  Object.values(tidyChecks).flatMap((check) => check(repository))
