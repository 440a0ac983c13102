// A running mean in a state: two of them, in two threads.
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "learn.h"

static void print(void *context, const char *text) { *static_cast<std::string *>(context) += text; }

static void run(double scale, std::string *log, learn_state *state) {
  learn_workspace workspace;
  learn_workspace_init(&workspace);
  workspace.print = print;
  workspace.print_context = log;
  for (int k = 0; k < 2; k++) {
    std::vector<double> rows(12);
    for (int i = 0; i < 12; i++) rows[i] = scale * (i + k);
    double moved;
    if (learn(&workspace, state, rows.data(), 4, &moved) != LEARN_OK) *log += workspace.message;
  }
  learn_workspace_release(&workspace);
}

int main() {
  learn_state states[2];
  std::string logs[2];
  learn_state_init(&states[0]);
  learn_state_copy(&states[1], &states[0]);
  std::thread first(run, 1.0, &logs[0], &states[0]), second(run, 10.0, &logs[1], &states[1]);
  first.join();
  second.join();
  for (int k = 0; k < 2; k++)
    std::printf("%ld: %g %g %g\n%s", (long)states[k].count, states[k].mean[0], states[k].mean[1],
                states[k].mean[2], logs[k].c_str());
}
