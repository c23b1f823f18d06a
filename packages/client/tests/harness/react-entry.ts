/** What `react.ts` bundles with each version of React. */
import * as React from 'react'

export { createRoot, hydrateRoot } from 'react-dom/client'
export { renderToString } from 'react-dom/server'
export * as plinth from '../../src/react/index.ts'
export { React }
