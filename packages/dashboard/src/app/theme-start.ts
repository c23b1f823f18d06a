/** Runs before the page is painted, so that a page in dark colors does not flash. */
import { readTheme, showTheme } from './theme.ts'

showTheme(readTheme())
