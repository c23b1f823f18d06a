/** Whether a text can be the name of a secret; it can be that of an environment variable then. */
export const isSecretName = (name: string): boolean => /^[A-Za-z_]\w{0,127}$/.test(name)
