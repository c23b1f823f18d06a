/** Buttons: with text, and with an icon alone, whose name is also its tooltip. */
import type { ComponentProps, ReactNode } from 'react'
import { classNames } from './class-names.ts'
import { Icon, type IconName } from './icons.tsx'
import { Tooltip } from './tooltip.tsx'

export interface ButtonProps extends ComponentProps<'button'> {
  /** `primary` at most once per view. Default `plain`. */
  readonly kind?: 'primary' | 'plain' | 'quiet' | 'danger'
  readonly size?: 'small' | 'medium' | 'large'
  readonly icon?: IconName
  /** Shows that the action runs, and prevents a second one. */
  readonly isBusy?: boolean
  readonly children?: ReactNode
}

export function Button({
  kind = 'plain',
  size = 'medium',
  icon,
  isBusy = false,
  className,
  children,
  disabled,
  type = 'button',
  ...rest
}: ButtonProps) {
  return (
    <button
      type={type}
      className={classNames('button', `button-${kind}`, `button-${size}`, className)}
      disabled={disabled || isBusy}
      aria-busy={isBusy || undefined}
      {...rest}
    >
      {isBusy ? <span className="spinner" aria-hidden="true" /> : icon && <Icon name={icon} />}
      {children}
    </button>
  )
}

export interface IconButtonProps extends Omit<ComponentProps<'button'>, 'children'> {
  readonly icon: IconName
  /** What it does; also its tooltip. */
  readonly label: string
  readonly size?: 'small' | 'medium'
  /** Shown in the tooltip, such as `⌘K`. */
  readonly shortcut?: string
}

export function IconButton({ icon, label, size = 'medium', shortcut, className, ...rest }: IconButtonProps) {
  return (
    <Tooltip text={label} {...(shortcut === undefined ? {} : { shortcut })}>
      <button
        type="button"
        className={classNames('button', 'button-quiet', 'button-icon', `button-${size}`, className)}
        aria-label={label}
        {...rest}
      >
        <Icon name={icon} />
      </button>
    </Tooltip>
  )
}
