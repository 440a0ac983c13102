/* The root of a number and its slope, and what a check says. */
#include <stdio.h>
#include "root.h"

int main(void) {
  root_gradient_workspace workspace;
  double value, slope;
  root_gradient_workspace_init(&workspace);
  for (int k = 1; k <= 3; k++) {
    if (root_gradient(&workspace, k, &value, &slope) != ROOT_OK) return 1;
    printf("%.15g %.15g\n", value, slope);
  }
  if (root_gradient(&workspace, -1.0, &value, &slope) == ROOT_FAILED)
    printf("%.*s\n", 32, workspace.message);
  root_gradient_workspace_release(&workspace);
  return 0;
}
