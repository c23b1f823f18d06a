/** Data. */
export default function Data() {
  return null
}
