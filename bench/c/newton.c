/* Newton's method, as one would write it by hand. Its gradient solves the transposed equations once,
   where it has arrived: who writes by hand does not differentiate the steps. */
#include <math.h>

static double solve(double p, double q, double *solution)
{
    double u = 1.0, v = 2.0, e = exp(u), f = u * u + v * v - p, g = v * e - q;
    while (fabs(f) + fabs(g) > 1e-10) {
        double det = 2.0 * e * (u - v * v);
        double du = (e * f - 2.0 * v * g) / det, dv = (2.0 * u * g - f * v * e) / det;
        u -= du;
        v -= dv;
        e = exp(u);
        f = u * u + v * v - p;
        g = v * e - q;
    }
    solution[0] = u;
    solution[1] = v;
    return u + v;
}

void value(const double *arguments, double *results)
{
    double solution[2];
    results[0] = solve(arguments[0], arguments[1], solution);
}

void gradient(const double *arguments, double *results)
{
    double solution[2];
    results[0] = solve(arguments[0], arguments[1], solution);
    double u = solution[0], v = solution[1], e = exp(u), det = 2.0 * e * (u - v * v);
    results[1] = (e - v * e) / det;
    results[2] = (2.0 * u - 2.0 * v) / det;
}
