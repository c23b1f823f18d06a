/** The same configuration beside a function that waits for the changes of every tenant. */
import plain from '../plain/plinth.config.ts'

export default plain
