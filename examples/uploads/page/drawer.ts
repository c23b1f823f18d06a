/** The drawer: signs in, shows the stored files, and accepts files to upload. */
import { isPlinthError } from 'plinth-client'
import { find } from '../../page-dom.ts'
import { createFileList } from './file-list.ts'
import { plinth, signIn } from './plinth.ts'
import { createUploads } from './uploads.ts'

const reconnectMs = 2000

function acceptFiles(upload: (file: File) => void): void {
  const add = (files: FileList | null | undefined) => {
    for (const file of files ?? []) upload(file)
  }
  const drop = find('drop')
  const input = find<HTMLInputElement>('choose')
  input.disabled = false
  input.onchange = () => {
    add(input.files)
    // Allows the same file to be chosen again.
    input.value = ''
  }
  const mark = (isOver: boolean) => (event: DragEvent) => {
    event.preventDefault()
    drop.classList.toggle('over', isOver)
    if (event.type === 'drop') add(event.dataTransfer?.files)
  }
  drop.ondragover = mark(true)
  drop.ondragleave = mark(false)
  drop.ondrop = mark(false)
}

function showState(state: string, text: string): void {
  document.body.dataset.state = state
  find('state').textContent = text
}

const showError = (error: Error): void => showState('failed', error.message)

/** Retries until the server is available. */
async function start(): Promise<void> {
  try {
    const userId = await signIn()
    const refresh = createFileList(userId)
    await refresh()
    acceptFiles(createUploads(userId, () => void refresh().catch(showError)))
    // An anonymous user has no credentials: when the session has ended, the page begins with a new user.
    plinth.auth.onChange((session) => session ?? location.reload())
    showState('open', 'private, signed in with this browser')
  } catch (error) {
    if (!isPlinthError(error)) throw error
    showState('connecting', error.status === 0 ? 'no connection, retrying' : error.message)
    setTimeout(start, reconnectMs)
  }
}

window.addEventListener('unhandledrejection', ({ reason }) => showError(reason))
void start()
