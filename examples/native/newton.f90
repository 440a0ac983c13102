! The root of a number and its slope.
program newton
  use, intrinsic :: iso_c_binding
  implicit none

  type, bind(c) :: workspace
    character(kind=c_char) :: message(512)
    type(c_funptr) :: print
    type(c_ptr) :: print_context
    integer(c_int64_t) :: words(4096) ! at least as many as in root.h
  end type

  interface
    subroutine init(w) bind(c, name="root_gradient_workspace_init")
      import :: workspace
      type(workspace), intent(out) :: w
    end subroutine
    subroutine release(w) bind(c, name="root_gradient_workspace_release")
      import :: workspace
      type(workspace), intent(inout) :: w
    end subroutine
    integer(c_int) function root_gradient(w, a, value, slope) bind(c)
      import :: workspace, c_int, c_double
      type(workspace), intent(inout) :: w
      real(c_double), value :: a
      real(c_double), intent(out) :: value, slope
    end function
  end interface

  type(workspace) :: w
  real(c_double) :: value, slope
  integer :: k

  call init(w)
  do k = 1, 3
    if (root_gradient(w, real(k, c_double), value, slope) /= 0) stop 1
    print "(f12.9, f12.9)", value, slope
  end do
  call release(w)
end program
