/** The section `functions`: where the application's server code is, and the processes that run it. */
import { isAbsolute, normalize } from 'node:path'
import { z } from 'zod'
import { hostMemoryBytes, hostMemoryBytesLeast, hostsDefault, hostsMost } from '../../../limits/functions.ts'
import { MiB } from '../../../limits/units.ts'
import { byteSize, strictObject } from '../../shape-parts.ts'

export interface FunctionsConfig {
  /** Relative to the folder of the configuration. */
  readonly folder: string
  /** Whether the configuration names the folder, which must then exist. */
  readonly isRequired: boolean
  readonly hosts: number
  readonly memoryBytes: number
}

const isInside = (folder: string): boolean => !isAbsolute(folder) && !/^\.\.(?:[\\/]|$)/.test(normalize(folder))

export const functionsShape = strictObject({
  folder: z
    .string()
    .min(1)
    .refine(isInside, 'must be a folder beside the configuration, such as "functions"')
    .optional(),
  hosts: z.int().min(1).max(hostsMost).default(hostsDefault),
  memory: byteSize
    .refine((bytes) => bytes >= hostMemoryBytesLeast, `must be at least ${hostMemoryBytesLeast / MiB}mb`)
    .default(hostMemoryBytes),
})

export const createFunctionsConfig = ({ folder, hosts, memory }: z.output<typeof functionsShape>): FunctionsConfig =>
  Object.freeze({ folder: folder ?? 'functions', isRequired: folder !== undefined, hosts, memoryBytes: memory })
