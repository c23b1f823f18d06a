/**
 * A drawer of files for everybody: each user has a folder named by the user's id, and nobody sees into another's. What
 * is to be shown to others goes out as a link that expires.
 */
import { and, defineConfig, where } from 'plinth'

export default defineConfig({
  storage: {
    buckets: {
      drawer: {
        maxFileSize: '2gb',
        userQuota: '5gb',
        images: true,
        access: {
          read: (auth) => auth && { uploadedBy: auth.id },
          // Keys from `{id}/` up to `{id}0`, the character behind the slash: a folder.
          write: (auth) =>
            auth && and({ uploadedBy: auth.id }, where('key', '>=', `${auth.id}/`), where('key', '<', `${auth.id}0`)),
          delete: (auth) => auth && { uploadedBy: auth.id },
        },
      },
    },
  },
})
