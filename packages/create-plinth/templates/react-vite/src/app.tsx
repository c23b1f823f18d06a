import { useSession } from 'plinth-client/react'
import { SignIn } from './sign-in'
import { Tasks } from './tasks'

export function App() {
  const { user, isLoading } = useSession()
  if (isLoading) return null
  return user ? <Tasks user={user} /> : <SignIn />
}
