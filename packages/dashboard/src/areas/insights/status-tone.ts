/** The color of a status. */
import type { Tone } from '../../design/badge.tsx'

export const toneOf = (status: number): Tone => (status >= 500 ? 'bad' : status >= 400 ? 'warn' : 'good')
