/** The templates: `templates/NAME` over `templates/shared`. */

export interface Template {
  readonly name: string
  readonly summary: string
  /** Commands to run after `npm install`. */
  readonly next: readonly string[]
}

/** The first one is the default. */
export const templates: readonly [Template, ...Template[]] = [
  {
    name: 'react-vite',
    summary: 'A page with React and Vite that signs in and shows a live list',
    next: ['npm run dev'],
  },
  {
    name: 'node',
    summary: 'A program for the terminal that signs in and shows a live list',
    next: ['npm run dev', 'npm start    # in a second terminal'],
  },
  { name: 'none', summary: 'Only the backend', next: ['npm run dev'] },
]

export const findTemplate = (name: string): Template | undefined => templates.find((template) => template.name === name)
