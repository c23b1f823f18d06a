/**
 * One bucket with a private folder for each user, named after the user id. Files are shared through signed URLs that
 * expire.
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
          // Keys from `{id}/` to `{id}0`, where 0 is the character after the slash: the folder of the user.
          write: (auth) =>
            auth && and({ uploadedBy: auth.id }, where('key', '>=', `${auth.id}/`), where('key', '<', `${auth.id}0`)),
          delete: (auth) => auth && { uploadedBy: auth.id },
        },
      },
    },
  },
})
