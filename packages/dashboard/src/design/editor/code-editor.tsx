/** An editor with syntax colors and problems where they are. Its language is given by the file that uses it. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { type Diagnostic, setDiagnostics } from '@codemirror/lint'
import { EditorState, type Extension, type Text } from '@codemirror/state'
import { EditorView, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'
import { styleNonce } from './style-nonce.ts'

/** What is wrong at a place of the text, from 1; without a column the whole line. */
export interface CodeProblem {
  readonly message: string
  readonly line: number
  readonly column?: number
}

export interface CodeEditorProps {
  readonly label: string
  readonly text: string
  /** Must be the same object at each render. */
  readonly language: Extension
  readonly isReadOnly?: boolean
  /** Found by the server; those of the language are its own. Must be the same object until they change. */
  readonly problems?: readonly CodeProblem[]
  readonly onChange: (text: string) => void
  /** `Ctrl Enter` or `⌘ Enter`. */
  readonly onSubmit?: () => void
}

const colors = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--accent-text)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--good)' },
  { tag: tags.number, color: 'var(--warn)' },
  { tag: [tags.bool, tags.null, tags.keyword, tags.operatorKeyword], color: 'var(--violet)' },
  { tag: tags.comment, color: 'var(--text-3)' },
])

/** Of the editor itself, whose own styles are in no layer and would win over those of the area. */
const theme = EditorView.theme({
  '&': { maxHeight: '320px', background: 'var(--field)', fontSize: 'var(--text-12)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--font-mono)', lineHeight: '1.6' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-cursor': { borderInlineStartColor: 'var(--text)' },
  '.cm-gutters': { border: '0', background: 'transparent', color: 'var(--text-3)' },
  '.cm-tooltip': { border: '1px solid var(--line)', background: 'var(--raised)', color: 'var(--text)' },
  // Without the library's underline, which is an image from a `data:` URL, and so refused by the policy of the page.
  '.cm-lintRange-error': { backgroundImage: 'none', textDecoration: 'underline wavy var(--bad)' },
  '.cm-lintPoint::after': { borderBottomColor: 'var(--bad)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    background: 'color-mix(in srgb, var(--accent) 28%, transparent)',
  },
})

/**
 * Replaces a selection by what is typed. The browser would keep the color of the replaced text in a `style` attribute,
 * which the policy of the page refuses with an error.
 */
const replaceSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { state } = view
    const isTyped = event.inputType === 'insertText' && event.data !== null && !event.isComposing
    if (!isTyped || state.readOnly || state.selection.main.empty) return false
    event.preventDefault()
    view.dispatch(state.replaceSelection(event.data), { userEvent: 'input.type', scrollIntoView: true })
    return true
  },
})

const common: Extension = [
  replaceSelection,
  lineNumbers(),
  history(),
  bracketMatching(),
  syntaxHighlighting(colors),
  theme,
  EditorView.lineWrapping,
]

/** A problem of a text that has been edited since may be past its end. */
function diagnosticOf({ message, line, column }: CodeProblem, doc: Text): Diagnostic {
  const { from, to } = doc.line(Math.min(Math.max(line, 1), doc.lines))
  const start = column === undefined ? from : Math.min(from + column - 1, to)
  return { from: start, to, severity: 'error', message }
}

const noProblems: readonly CodeProblem[] = []

export function CodeEditor(props: CodeEditorProps) {
  const { label, text, language, isReadOnly = false, problems = noProblems } = props
  const parent = useRef<HTMLDivElement>(null)
  const editor = useRef<EditorView | null>(null)
  const latest = useRef(props)
  latest.current = props
  const initial = useRef(text)

  useEffect(() => {
    if (parent.current === null) return
    const submit = (): boolean => {
      latest.current.onSubmit?.()
      return latest.current.onSubmit !== undefined
    }
    const view = new EditorView({
      parent: parent.current,
      state: EditorState.create({
        doc: initial.current,
        extensions: [
          // Tab would trap the keyboard; Escape and then Tab leaves the editor.
          keymap.of([{ key: 'Mod-Enter', run: submit }, ...defaultKeymap, ...historyKeymap, indentWithTab]),
          common,
          language,
          EditorView.cspNonce.of(styleNonce),
          EditorView.contentAttributes.of({ 'aria-label': label }),
          EditorState.readOnly.of(isReadOnly),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange(update.state.doc.toString())
          }),
        ],
      }),
    })
    editor.current = view
    return () => view.destroy()
  }, [label, language, isReadOnly])

  useEffect(() => {
    const view = editor.current
    if (view && view.state.doc.toString() !== text)
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } })
  }, [text])

  useEffect(() => {
    const view = editor.current
    if (!view) return
    const { doc } = view.state
    view.dispatch(
      setDiagnostics(
        view.state,
        problems.map((problem) => diagnosticOf(problem, doc)),
      ),
    )
  }, [problems])
  return <div className="code-editor" ref={parent} />
}
