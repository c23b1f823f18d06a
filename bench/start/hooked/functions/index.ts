import { functionsFor } from 'plinth/functions'

const { onChange } = functionsFor()

export const note = onChange('workspace.notes', { on: ['insert'] }, () => {})
