/** An editor of TypeScript. A chunk of its own. */
import { delimitedIndent, indentNodeProp, LRLanguage } from '@codemirror/language'
import { parser } from '@lezer/javascript'
import { CodeEditor, type CodeEditorProps } from './code-editor.tsx'

const language = LRLanguage.define({
  name: 'typescript',
  parser: parser.configure({
    dialect: 'ts',
    props: [
      indentNodeProp.add({
        'ObjectExpression ArrayExpression ArgList Block': delimitedIndent({ closing: '}', align: false }),
      }),
    ],
  }),
}).extension

export const TypeScriptEditor = (props: Omit<CodeEditorProps, 'language'>) => (
  <CodeEditor {...props} language={language} />
)
