/* Functions for sources that are to be as fast as we can write them. The coefficients are those of
   wend's native backend (math_trig.py, math_exp.py, math_log.py), found there by Remez exchange. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* 1.5 * 2^52: adding it by fma, which no compiler takes apart, rounds to an integer in the low bits. */
#define ROUND 6755399441055744.0

static inline uint64_t bits(double x)
{
    uint64_t word;
    memcpy(&word, &x, sizeof word);
    return word;
}

static inline double number(uint64_t word)
{
    double x;
    memcpy(&x, &word, sizeof x);
    return x;
}

/* For loops that wait for the result: sin(n pi/32 + d) by a polynomial for each n. |x| < 2^20. */
static double rows[80][8] __attribute__((aligned(64)));

__attribute__((constructor)) static void fill_rows(void)
{
    static const double of_sin[4] = {1.0, -0.16666666666665955, 0.008333333315449302,
                                     -0.00019839991916850396};
    static const double of_cos[4] = {1.0, -0.49999999999993594, 0.0416666665056658,
                                     -0.0013887738603131211};
    for (int n = 0; n < 80; n++)
        for (int k = 0; k < 4; k++) {
            rows[n][2 * k] = of_cos[k] * (n % 32 ? sin(n * M_PI / 32) : 0.0);
            rows[n][2 * k + 1] = of_sin[k] * ((n + 16) % 32 ? cos(n * M_PI / 32) : 0.0);
        }
}

static inline double quick_sin(double x)
{
    double near = fma(x, 10.185916357881302, ROUND), n = near - ROUND;
    const double *row = rows[bits(near) & 63];
    double first = fma(-n, 0.09817477042468103, x), d = fma(-n, 3.8270199303721256e-18, first);
    double high = fma(first * first, fma(row[7], first, row[6]), fma(row[5], first, row[4]));
    double s = d * d, low = fma(s, fma(row[3], d, row[2]), fma(row[1], d, row[0]));
    return fma(s * s, high, low);
}

/* For many at once, without a branch, so that compilers make vectors of it. |x| < 2^30. */
static inline void sincos_of(double x, double *sine, double *cosine)
{
    double near = fma(x, 0.6366197723675814, ROUND), n = near - ROUND;
    double r = fma(-n, 6.123233995736766e-17, fma(-n, 1.5707963267948966, x)), s = r * r;
    double p = fma(s, 1.5895433288751217e-10, -2.5050734389253013e-08);
    p = fma(s, fma(s, fma(s, fma(s, p, 2.7557313538514225e-06), -0.00019841269829358528),
                   0.00833333333332184), -0.1666666666666663);
    double q = fma(s, -1.1358749239931884e-11, 2.0875705396029227e-09);
    q = fma(s, fma(s, fma(s, fma(s, q, -2.755731421703886e-07), 2.480158728900208e-05),
                   -0.0013888888888873342), 0.041666666666666595);
    double a = fma(r * s, p, r), b = fma(s * s, q, fma(s, -0.5, 1.0));
    uint64_t quadrant = bits(near);
    double first = quadrant & 1 ? b : a, second = quadrant & 1 ? a : b;
    *sine = number(bits(first) ^ (quadrant & 2) << 62);
    *cosine = number(bits(second) ^ (quadrant + 1 & 2) << 62);
}

/* expm1 of what is left of x after k ln 2, and 2^k. |x| <= 708. */
static inline double expm1_part(double x, double *power)
{
    double near = fma(x, 1.4426950408889634, ROUND), k = near - ROUND;
    double r = fma(-k, 2.3190468138462996e-17, fma(-k, 0.6931471805599453, x)), r2 = r * r;
    double low = fma(r2, fma(r, 0.166666666666667, 0.5000000000000007), r);
    double a = fma(r, 0.008333333333291133, 0.0416666666665606);
    double b = fma(r, 0.00019841269992038464, 0.0013888888936625487);
    double c = fma(r, 2.755711191011926e-06, 2.4801499318858973e-05);
    double d = fma(r, 2.5163051357342003e-08, 2.762837616574091e-07), r4 = r2 * r2;
    *power = number((bits(near) << 52) + ((uint64_t)1023 << 52));
    return fma(r4, fma(r4, fma(r2, d, c), fma(r2, b, a)), low);
}

static inline double quick_exp(double x)
{
    double power, part = expm1_part(x, &power);
    return fma(power, part, power);
}

static inline double quick_tanh(double x)
{
    double power, part = expm1_part(2.0 * fmin(fabs(x), 22.0), &power);
    return copysign(fma(power, part, power - 1.0) / fma(power, part, power + 1.0), x);
}

/* For positive normal numbers. */
static inline double quick_log(double x)
{
    int64_t k = (int64_t)(bits(x) - bits(0.7071067811865476)) >> 52;
    double f = number(bits(x) - ((uint64_t)k << 52)) - 1.0, s = f / (f + 2.0), z = s * s;
    double p = fma(z, 0.14795632867723466, 0.15314084874115147);
    p = fma(z, fma(z, fma(z, fma(z, p, 0.18183562850518523), 0.22222198605061974),
                   0.28571428742028154), 0.3999999999941664);
    p = fma(z, p, 0.6666666666666734);
    return fma((double)k, 0.6931471805599453, fma(s * z, p, 2.0 * s));
}

/* A tape that doubles when it is full, and is kept from call to call. */
struct tape {
    double *data;
    long room;
};

static inline void make_room(struct tape *tape, long needed)
{
    if (__builtin_expect(needed > tape->room, 0)) {
        tape->room = 2 * needed < 1024 ? 1024 : 2 * needed;
        tape->data = realloc(tape->data, tape->room * sizeof(double));
    }
}
