import { PlinthProvider } from 'plinth-client/react'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app'
import { plinth } from './plinth'
import './style.css'

const root = document.getElementById('root')
if (!root) throw new Error('index.html has no element #root')

createRoot(root).render(
  <StrictMode>
    <PlinthProvider client={plinth}>
      <App />
    </PlinthProvider>
  </StrictMode>,
)
