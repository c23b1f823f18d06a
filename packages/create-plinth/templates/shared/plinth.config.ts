// The backend: tables, access rules and sign-in. `plinth dev` applies every change of this file at once.
import { defineConfig } from 'plinth'

export default defineConfig({
  databases: {
    shared: {
      tables: {
        tasks: {
          // Every record also has id, createdAt and updatedAt.
          schema: {
            title: { type: 'string', required: true, min: 1, max: 200 },
            isDone: { type: 'boolean', default: false },
            authorId: { type: 'string', required: true },
          },
          indexes: [{ fields: ['createdAt'] }],
          // A rule is true, false, or a filter over the record. `auth` is the caller, or null if signed out.
          access: {
            // Signed-in users see all tasks and change their own.
            read: (auth) => auth !== null,
            insert: (auth) => auth && { authorId: auth.id },
            update: (auth) => auth && { authorId: auth.id },
            delete: (auth) => auth && { authorId: auth.id },
          },
        },
      },
    },
  },
  // Users sign in as a guest, or with an email address and a password.
  auth: { anonymous: true, signup: true },
})
